"""JSON files, read as input that may be untrusted; and text files, written completely or not at all."""

import contextlib
import contextvars
import functools
import json
import os
import pathlib

from keras_bert_impl.process_group import is_chief

# No model configuration is larger: a damaged or hostile file is refused before anything of its size is allocated.
LARGEST_JSON = 2**26
_kept = contextvars.ContextVar("kept", default=None)


@contextlib.contextmanager
def reading_once(kept):
    """Within this context, what functions that are `read_once` return is kept in the dict `kept`, whatever asks."""
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)


def read_once(read):
    """`read`, a function of a path, whose result must not be changed: within `reading_once` it reads a file once."""

    @functools.wraps(read)
    def read_or_kept(path, **options):
        kept, key = _kept.get(), (read, str(path))
        if kept is None:
            return read(path, **options)
        if key not in kept:
            kept[key] = read(path, **options)
        return kept[key]

    return read_or_kept


@read_once
def read_json(path, largest=LARGEST_JSON):
    """Reads the object in a JSON file, which may be untrusted. Raises ValueError that names the file."""
    path = pathlib.Path(path)
    if largest is not None and path.stat().st_size > largest:
        raise ValueError(
            f"{path} has {path.stat().st_size:,} bytes, expected at most {largest:,}. Is it a model configuration?"
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} line {error.lineno}: not valid JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number with thousands of digits, nested too deeply
        raise ValueError(f"{path}: not valid JSON ({error}).") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(found).__name__}.")
    return found


def read_json_if_there(path):
    """As `read_json`; {} if there is no such file."""
    return read_json(path) if pathlib.Path(path).is_file() else {}


def write_json(path, content):
    """Writes a JSON file completely or not at all. Only one of several processes writes."""
    if not is_chief():
        return
    with written_whole(path) as file:
        file.write(json.dumps(content, indent=2) + "\n")


def write_json_lines(path, rows):
    """Writes a line of JSON for each dict, all or none."""
    with written_whole(path) as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@contextlib.contextmanager
def written_whole(path):
    """Yields a text file to write to, which replaces the one at `path` once all is written.

    After an error the earlier file is as it was, and `path` with .writing after it holds what was written until then.
    """
    path = pathlib.Path(path).resolve()  # a link keeps leading to its file
    writing = path.with_name(path.name + ".writing")
    with writing.open("w", encoding="utf-8", newline="") as file:
        yield file
    os.replace(writing, path)
