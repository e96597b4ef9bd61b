"""Records which input files a data preparation started with: it may only be resumed with the same files.

Pieces of the corpus are identified by their number. If a file is added or removed, the pieces after it hold other text
than what was tokenized under the same numbers: some text would be counted twice and some not at all.
"""

import json
import pathlib

from keras_bert_impl.json_files import write_json
from keras_bert_impl.text.rows.shards import file_sha256

NAMED_FILES = 5  # listed at most for each kind of change in an error message


def check_input(directory, pieces):
    """The files of a corpus, after checking that an earlier run in this directory, if any, read the same files.

    Returns a dict from the name of a file to a dict with "bytes", "modified", "piece" and, for files that the earlier
    run has read, "sha256". The default corpus has no files.

    Raises: ValueError naming the files that were added, removed or changed.
    """
    files = {}
    for piece in pieces:
        for name, path in piece.files:
            status = pathlib.Path(path).stat()
            files[name] = {"bytes": status.st_size, "modified": status.st_mtime_ns, "piece": piece.number}
    record = pathlib.Path(directory) / "input.json"
    if not record.is_file():
        return files
    earlier = json.loads(record.read_text(encoding="utf-8"))["files"]
    sums = {name: file.get("sha256") for name, file in earlier.items()}
    for path in (pathlib.Path(directory) / "work").glob("piece-*.json"):
        sums |= json.loads(path.read_text(encoding="utf-8")).get("files", {})
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
        kinds = []
        for kind, names in changes.items():
            more = f" and {len(names) - NAMED_FILES:,} more" if len(names) > NAMED_FILES else ""
            kinds += [f"{kind} {', '.join(names[:NAMED_FILES])}{more}"] if names else []
        raise ValueError(
            f"The input files are not the ones that {directory} was made of: {'; '.join(kinds)}. Name another output "
            "to prepare the files as they are now, or restore the earlier files."
        )
    return {name: {**file, "sha256": sums.get(name)} for name, file in files.items()}


def write_input(directory, files, records=()):
    """Writes input.json: the files that `check_input` returned, with the SHA-256 from the records of the pieces."""
    sums = {name: sha256 for record in records for name, sha256 in record["files"].items()}
    known = {name: {**file, "sha256": sums.get(name, file.get("sha256"))} for name, file in files.items()}
    write_json(pathlib.Path(directory) / "input.json", {"files": known})


def _has_changed(earlier, now, sha256, path):
    if earlier["bytes"] != now["bytes"]:
        return True
    # A copy has another time but the same text. A file that no piece has read yet has no checksum, and may change.
    return earlier["modified"] != now["modified"] and sha256 is not None and file_sha256(path) != sha256
