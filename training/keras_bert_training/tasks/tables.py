"""Reads tables of text row by row: TSV, CSV and JSON Lines with named columns; malformed rows are reported with file
and line."""

import csv
import itertools
import json
import pathlib

END_OF_FILE = "\0end of file"  # added after the last line of a CSV: a cell that is never closed contains it


class BadRows:
    """The malformed rows of a file that is read; each is reported with file, line and content.

    Args:
        policy: "stop" raises ValueError at the first one; "skip" leaves them out and collects the reports in
            `messages`.
    """

    def __init__(self, policy="stop"):
        self.policy, self.messages = policy, []

    def add(self, place, problem, content):
        """Reports one row: `place` is file and line, `problem` what is wrong, `content` the row or the cell."""
        message = f"{place}: {problem}: {str(content).strip()[:120]!r}"
        if self.policy == "stop":
            raise ValueError(f"{message}. Correct it, or skip such rows with --bad_rows skip.")
        self.messages.append(message)


def read_table(path, columns, bad_rows, optional=(), others=False):
    """Yields (place, {our name: cell}) for each valid row of a table; `place` is its file and line.

    A .csv file may quote cells and break lines within them. In .tsv and .txt files a quotation mark is a character
    like any other, as in the GLUE distribution, where many sentences contain a single one. A .jsonl file holds one
    object in each line.

    Args:
        path: .csv, .tsv, .txt or .jsonl, in UTF-8, with or without byte order mark.
        columns: our name -> name of the file's column; or its number, from 0, in a file without a header.
        bad_rows: a BadRows.
        optional: those of our names whose column may be missing from the whole file.
        others: whether rows also have the file's other columns, by their own names; then `columns` may be empty, and a
            file without rows is allowed.

    Raises: ValueError if the file has no valid row, or lacks a column.
    """
    path = pathlib.Path(path)
    rows = _json_table if path.suffix == ".jsonl" else _cell_table
    found = False
    for place, row, content in rows(path, columns, bad_rows, optional):
        found = True
        yield place, {**content, **row} if others else row
    if not found and not others:
        wanted = ", ".join(str(name) for ours, name in columns.items() if ours not in optional)
        raise ValueError(" ".join([f"{path} has no valid line: expected {wanted}.", *bad_rows.messages[:1]]))


def _cell_table(path, columns, bad_rows, optional):
    lines = (_csv_lines if path.suffix == ".csv" else _tab_lines)(path)
    by_number = bool(columns) and all(isinstance(column, int) for column in columns.values())
    width, header = None, []
    if not by_number:
        _, header, _ = next(lines, (1, [], ""))
        missing = [name for ours, name in columns.items() if name not in header and ours not in optional]
        if missing:
            raise ValueError(f"{path} line 1: no column {', '.join(map(repr, missing))}, found {', '.join(header)}.")
        width = len(header)
        columns = {ours: header.index(name) for ours, name in columns.items() if name in header}
    for number, cells, content in lines:
        width = width or len(cells)
        if len(cells) != width:
            bad_rows.add(f"{path} line {number}", f"{len(cells)} columns, expected {width}", content)
        else:
            row = {ours: cells[place] for ours, place in columns.items()}
            yield f"{path} line {number}", row, dict(zip(header, cells, strict=False))


def _tab_lines(path):
    # Split only at \n: str.splitlines also splits at characters that occur within sentences, such as U+2028.
    for number, line in enumerate(_lines(path, "\n"), start=1):
        line = line.removesuffix("\n").removesuffix("\r")
        if line:
            yield number, line.split("\t"), line


def _csv_lines(path):
    csv.field_size_limit(2**31 - 1)  # Python's own limit, 131,072 characters, is less than a long document has
    # newline="": otherwise Python would treat \r within a cell as the end of a line.
    reader = csv.reader(itertools.chain(_lines(path, ""), [END_OF_FILE]))
    number = 1
    for cells in reader:
        if cells == [END_OF_FILE]:
            return
        if cells and cells[-1].endswith(END_OF_FILE):
            raise ValueError(
                f"{path} line {number}: a quotation mark opens a cell that is never closed, which would take in the "
                "rest of the file. Close it; a quotation mark within a quoted cell is written twice."
            )
        if cells:
            yield number, cells, ",".join(cells)
        number = reader.line_num + 1


def _lines(path, newline):
    """The lines of a file with their ends, one at a time; without a byte order mark."""
    with path.open(encoding="utf-8-sig", newline=newline) as file:
        yield from file


def _json_table(path, columns, bad_rows, optional):
    present = None
    for number, line in enumerate(_lines(path, "\n"), start=1):
        if not line.strip():
            continue
        place = f"{path} line {number}"
        content = _json_content(line, place, bad_rows)
        row = None if content is None else _json_row(content, line, place, columns, bad_rows, optional)
        if row is None:
            continue
        present = present or row.keys()
        if row.keys() != present:
            which = " and ".join(columns[ours] for ours in sorted(row.keys() ^ present))
            bad_rows.add(place, f"only some lines have {which}, expected in all or in none", line)
            continue
        yield place, row, content


def _json_content(line, place, bad_rows):
    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:
        return bad_rows.add(place, f"not valid JSON ({error.msg})", line)
    if not isinstance(content, dict):
        return bad_rows.add(place, f"{line.strip()[:60]!r} is not an object", line)
    return content


def _json_row(content, line, place, columns, bad_rows, optional):
    for ours, name in columns.items():
        if name not in content and ours not in optional:
            return bad_rows.add(place, f"no {name!r}, found {', '.join(content) or 'nothing'}", line)
        value = content.get(name, "")
        if ours != "label" and not isinstance(value, str):
            return bad_rows.add(place, f"{name} is {value!r:.60}, expected a string", line)
        if not isinstance(value, str | int | float):
            return bad_rows.add(place, f"{name} is {value!r:.60}, expected a string or a number", line)
    return {ours: content[name] for ours, name in columns.items() if name in content}
