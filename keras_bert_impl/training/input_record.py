"""Which files a preparation was begun with: what is prepared goes on only from the same ones.

Pieces of the corpus are known by their number. With a file more or less, the pieces after it hold other text than those
that were tokenized under these numbers: one text would be counted twice and another one not at all.
"""

import json
import pathlib

from keras_bert_impl.json_files import write_json
from keras_bert_impl.preprocessing.shards import file_sha256

NAMED_FILES = 5  # of each kind, in an error


def check_input(directory, pieces):
    """The files of a corpus, if an earlier run of the directory read the same: a dict of name to what is known.

    That is "bytes", "modified", "piece" and, of those that the earlier run had read, "sha256". The default corpus has
    no files.

    Raises: ValueError naming the files that were added, removed or changed.
    """
    files = _described(pieces)
    record = pathlib.Path(directory) / "input.json"
    if not record.is_file():
        if any((pathlib.Path(directory) / "work").glob("piece-*.json")):
            raise ValueError(
                f"{directory} was begun by an earlier version, which did not record its input: name another output, or "
                "remove it."
            )
        return files
    earlier = json.loads(record.read_text(encoding="utf-8"))["files"]
    sums = {**{name: file.get("sha256") for name, file in earlier.items()}, **_sums_of_pieces(directory)}
    paths = {name: path for piece in pieces for name, path in piece.files}
    both = [name for name in files if name in earlier]
    changes = {
        "added": [name for name in files if name not in earlier],
        "removed": [name for name in earlier if name not in files],
        "changed": [name for name in both if _has_changed(earlier[name], files[name], sums.get(name), paths[name])],
    }
    if not any(changes.values()):
        changes["in another piece"] = [name for name in both if earlier[name]["piece"] != files[name]["piece"]]
    if any(changes.values()):
        raise ValueError(
            f"The input is not what {directory} was made of: {_named(changes)}. Name another output to prepare it as "
            "it is now, or bring the files back as they were."
        )
    return {name: {**file, "sha256": sums.get(name)} for name, file in files.items()}


def write_input(directory, files, records=()):
    """Writes input.json: the files of `check_input`, with the SHA-256 that the records of the pieces have."""
    sums = {name: sha256 for record in records for name, sha256 in record["files"].items()}
    known = {name: {**file, "sha256": sums.get(name, file.get("sha256"))} for name, file in files.items()}
    write_json(pathlib.Path(directory) / "input.json", {"files": known})


def _described(pieces):
    files = {}
    for piece in pieces:
        for name, path in piece.files:
            status = pathlib.Path(path).stat()
            files[name] = {"bytes": status.st_size, "modified": status.st_mtime_ns, "piece": piece.number}
    return files


def _has_changed(earlier, now, sha256, path):
    if earlier["bytes"] != now["bytes"]:
        return True
    # A copy has another time and the same text. A file that no piece has read yet has no sum, and may change.
    return earlier["modified"] != now["modified"] and sha256 is not None and file_sha256(path) != sha256


def _sums_of_pieces(directory):
    sums = {}
    for path in (pathlib.Path(directory) / "work").glob("piece-*.json"):
        sums |= json.loads(path.read_text(encoding="utf-8")).get("files", {})
    return sums


def _named(changes):
    kinds = []
    for kind, names in changes.items():
        more = f" and {len(names) - NAMED_FILES:,} more" if len(names) > NAMED_FILES else ""
        if names:
            kinds.append(f"{kind} {', '.join(names[:NAMED_FILES])}{more}")
    return "; ".join(kinds)
