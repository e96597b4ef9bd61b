"""The site: `make docs` builds it into build/site. Its source directory is the clone, so that pages link to files."""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / place) for place in (".", "training", "serving"))]

import reference  # noqa: E402

import keras_bert_impl  # noqa: E402

project = "keras_bert_impl"
author = "The keras_bert_impl maintainers"
project_copyright = author
release = version = keras_bert_impl.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "notebooks/*.ipynb",
    "tpu/README.md",
    "serving/deploy/README.md",
    "benchmarks/results/*.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
]
exclude_patterns = [".venv", "build", "runs", "docs/_templates", "docs/_extra", "docs/_static"]
suppress_warnings = ["config.cache"]

myst_heading_anchors = 4
myst_links_external_new_tab = True
# `notebooks/run.py` executes the notebooks, before this and only if they have changed.
nb_execution_mode = "off"
nb_merge_streams = True
nitpick_ignore_regex = [("py:class", r"(?!keras_bert_).*")]  # Keras' own, and words that napoleon takes for types

default_role = "code"
smartquotes = False  # strings in docstrings are to be copied
toc_object_entries_show_parents = "hide"
add_module_names = False
templates_path = [str(HERE / "_templates")]
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_context = {"shown_members": reference.members_by_entry()}
autodoc_inherit_docstrings = False  # what Keras says about a method that we override is not what ours does
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Fields", "params_style"), ("Attributes", "params_style")]

html_theme = "pydata_sphinx_theme"
html_title = "keras_bert_impl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_extra_path = ["_extra"]
html_context = {"default_mode": "auto"}
html_sidebars = {page: [] for page in ("docs/serving", "docs/families", "docs/moving")}  # no pages are below them
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Before Sphinx looks for pages.
reference.write_pages(HERE / "api")


def setup(app):
    app.connect("source-read", reference.without_folder_links)
    app.connect("autodoc-process-signature", reference.signature_of_class)
    app.connect("autodoc-process-docstring", reference.as_restructured_text, priority=1)  # before napoleon
