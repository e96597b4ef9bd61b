"""JSON files: read as the untrusted input they may be, written whole or not at all."""

import json
import os
import pathlib

from keras_bert_impl.distribution import is_chief

# No description of a model is longer: a damaged or hostile file ends here, before anything of its size is made.
LARGEST_JSON = 2**26


def read_json(path):
    """The object of a JSON file, read as the untrusted input it may be. Raises ValueError naming the file."""
    path = pathlib.Path(path)
    if path.stat().st_size > LARGEST_JSON:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes: that is no description of a model.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} line {error.lineno}: not valid JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:  # not text, a number of thousands of digits, nested without end
        raise ValueError(f"{path}: not valid JSON ({error}).") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(found).__name__}.")
    return found


def write_json(path, content):
    """Writes JSON whole or not at all. Of several processes one writes."""
    if not is_chief():
        return
    path = pathlib.Path(path)
    temporary = path.with_name(path.name + ".writing")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, path)
