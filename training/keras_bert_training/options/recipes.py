"""The recipes that come with the package: YAML files of options."""

import pathlib

from keras_bert_impl.suggestions import did_you_mean

RECIPES = pathlib.Path(__file__).parents[1] / "recipes"


def recipe_path(name):
    """The file of a recipe, which is given by its path, or by a name such as bert_base/phase_128 within the package.

    Raises: ValueError if there is neither such a file nor such a recipe; the message lists the package's recipes.
    """
    for path in (pathlib.Path(name), RECIPES / name, RECIPES / f"{name}.yaml"):
        if path.is_file():
            return path
    known = sorted(path.relative_to(RECIPES).with_suffix("").as_posix() for path in RECIPES.rglob("*.yaml"))
    raise ValueError(
        f"{name} is neither a file nor a recipe of the package; its recipes are {', '.join(known)}."
        + did_you_mean(name, known)
    )
