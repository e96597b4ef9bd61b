import made_exports
import pytest


@pytest.fixture(params=["graph", pytest.param("files", marks=pytest.mark.full)])
def ask(request, tmp_path):
    """Function from a model, and texts by the names of inputs, to what a SavedModel of it answers: `ask_graph`, and in
    `make test-all` also `ask_files`."""
    if request.param == "graph":
        return made_exports.ask_graph
    return lambda model, *arguments, **named: made_exports.ask_files(model, tmp_path / "served", *arguments, **named)
