"""TFRecord files of rows as `tf.train.Example` messages, without TensorFlow.

A file has for each record its length, a checksum of that, the record and its checksum, as described in TensorFlow's
tensorflow/core/lib/io/record_writer.h; checksums are CRC-32C, masked. Messages are encoded as in
https://protobuf.dev/programming-guides/encoding. A feature's values are encoded for all rows at once; the bytes before
them in a row depend only on their size. Rows are parsed all at once, too, each step of the format for every row.
"""

import functools
import itertools
import os
import struct

import google_crc32c
import numpy as np

from keras_bert_impl.text.ragged import Ragged, places

HEAD = struct.Struct("<QI")  # length of the record, checksum of the length
FOOT = struct.Struct("<I")  # checksum of the record
BUFFER_BYTES = 1 << 18
# The fields of tensorflow.Feature.
FLOAT_LIST, INT64_LIST = 2, 3
BEHIND = 2  # zeros behind the records: where a broken one says that a field follows, none is found
NO_EXAMPLE = (
    "The records are not tf.train.Example messages with packed numbers, which keras-bert prepare-data and "
    "google-research/bert's create_pretraining_data.py write."
)


class DamagedRecords(ValueError):
    """A record does not have its checksum, or the file ends within a record."""


def write_examples(path, batches):
    """Writes one file of what `serialize_rows` makes of each batch; returns the number of examples."""
    return write_records(path, (record for columns in batches for record in serialize_rows(columns)))


def write_records(path, records):
    """Writes one file of records, an iterable of bytes; returns their number."""
    count = 0
    with open(path, "wb", BUFFER_BYTES) as file:
        for record in records:
            head = HEAD.pack(len(record), _checksum_of_length(len(record)))
            file.write(b"".join([head, record, FOOT.pack(_checksum(record))]))
            count += 1
    return count


class RecordReader:
    """Reads the records of a TFRecord file in order.

    Raises: DamagedRecords with the place in the file, if a record is not as it was written.
    """

    def __init__(self, path):
        self.path, self._file = path, open(path, "rb", BUFFER_BYTES)

    def read(self, count):
        """The next `count` records, a list of bytes; fewer at the end of the file."""
        return self._next(count, self._record)

    def skip(self, count):
        """Passes over `count` records without looking at them; returns a list with None for each."""
        return self._next(count, self._passed)

    def close(self):
        self._file.close()

    def _next(self, count, content):
        found = []
        while len(found) < count and (head := self._file.read(HEAD.size)):
            if len(head) < HEAD.size:
                self._refuse()
            length, checksum = HEAD.unpack(head)
            if checksum != _checksum_of_length(length):
                self._refuse()
            found.append(content(length))
        return found

    def _record(self, length):
        content = self._file.read(length + FOOT.size)
        record = content[:length]
        if len(content) < length + FOOT.size or FOOT.pack(_checksum(record)) != content[length:]:
            self._refuse()
        return record

    def _passed(self, length):
        self._file.seek(length + FOOT.size, os.SEEK_CUR)

    def _refuse(self):
        raise DamagedRecords(f"{self.path} is damaged in the record before byte {self._file.tell():,}.")


def _checksum(content):
    crc = google_crc32c.value(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@functools.lru_cache(maxsize=10_000)  # a file has few different lengths
def _checksum_of_length(length):
    return _checksum(length.to_bytes(8, "little"))


def count_records(path):
    """The number of records in a file."""
    reader, count = RecordReader(path), 0
    while found := reader.skip(1 << 16):
        count += len(found)
    reader.close()
    return count


def serialize_rows(columns):
    """Rows as serialized `tf.train.Example`, a list of bytes; four times as fast as building each message.

    Args:
        columns: dict of feature name to integers or floats, (rows,), (rows, values) or `Ragged` (rows, values).
    """
    # Sorted: a map has no order of its own, and the same row must give the same bytes.
    entries = [_map_entries(name, columns[name]) for name in sorted(columns)]
    return [_field(1, b"".join(row)) for row in zip(*entries, strict=True)]  # Example.features


def _map_entries(name, values):
    """The entry of one feature in the map of each row, serialized: a list of bytes."""
    if isinstance(values, Ragged):
        values, lengths = values
    else:
        values = np.asarray(values)
        lengths, values = np.full(len(values), values[:1].size), values.reshape(-1)
    if values.dtype.kind == "f":
        kind, data, sizes = FLOAT_LIST, values.astype("<f4").tobytes(), 4
    else:
        kind, (data, sizes) = INT64_LIST, _varints(values)
    ends = np.cumsum(np.broadcast_to(sizes, len(values)), dtype=np.int64)
    ends = np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(lengths)])].tolist()  # of the rows, in bytes
    return [_entry_head(name, kind, end - start) + data[start:end] for start, end in itertools.pairwise(ends)]


@functools.lru_cache(maxsize=100_000)
def _entry_head(name, kind, size):
    """The bytes before the packed values, themselves `size` bytes, in an entry of the map in tensorflow.Features."""
    head = b""
    for number in (1, kind, 2):  # FloatList or Int64List.value, Feature.kind, the entry's value
        head = _field_head(number, len(head) + size) + head
    key = _field(1, name.encode())
    return _field_head(1, len(key) + len(head) + size) + key + head  # Features.feature


def _field(number, content):
    return _field_head(number, len(content)) + content


@functools.lru_cache(maxsize=100_000)
def _field_head(number, size):
    """Tag and length of a field of bytes."""
    return bytes([number << 3 | 2]) + _varints(np.array([size]))[0]


def _varints(values):
    """Integers in groups of seven bits, lowest first: the bytes of all, and the number of bytes of each, (values,)."""
    rest = values.astype(np.uint64)  # a negative one has ten bytes
    rest = rest.astype(np.uint32) if rest.max(initial=0) < 2**32 else rest
    groups, is_used = [], [np.ones(len(values), bool)]
    while is_used[-1].any():
        groups.append((rest & 127).astype(np.uint8))
        rest = rest >> 7
        is_used.append(rest != 0)
        groups[-1] |= is_used[-1].astype(np.uint8) << 7
    is_used.pop()
    sizes = sum(used.astype(np.uint8) for used in is_used)
    return np.stack(groups, axis=1)[np.stack(is_used, axis=1)].tobytes(), sizes


def parse_rows(records):
    """The features of serialized `tf.train.Example` messages; twice as fast as with the protobuf library.

    Args:
        records: list of bytes. Their features may be in any order; the values of a feature must be packed, as the
            protobuf libraries pack them.

    Returns: dict of feature name to `Ragged` (rows, values) of int64 or float32. A feature that only some rows have is
        empty in the others.
    Raises: ValueError for records of another kind.
    """
    content = np.frombuffer(b"".join([*records, bytes(BEHIND)]), np.uint8)
    lengths = np.array([len(record) for record in records], np.int64)
    starts = np.cumsum(lengths) - lengths
    place, ends = _enter(content, starts, 1)  # Example.features
    _refuse_if((ends != starts + lengths).any())
    places_of, rows = {}, np.arange(len(records))
    while len(rows := rows[place[rows] < ends[rows]]):
        entry, entry_end = _enter(content, place[rows], 1)  # Features.feature
        name_start, name_end = _enter(content, entry, 1)
        values, values_end = _enter(content, name_end, 2)
        _refuse_if((values_end != entry_end).any())
        for name, same in _names(content, name_start, name_end):
            kind, found = places_of.setdefault(name, (set(), np.zeros((2, len(records)), np.int64)))
            found[:, rows[same]] = _enter_list(content, values[same], values_end[same], kind)
        place[rows] = entry_end
    return {name: _values(content, kind, *found) for name, (kind, found) in places_of.items()}


def _refuse_if(is_broken):
    if is_broken:
        raise ValueError(NO_EXAMPLE)


def _enter(content, place, field):
    """Where the content of this field of bytes begins and ends, in each row: two arrays, int64 (rows,)."""
    _refuse_if((content[place] != (field << 3 | 2)).any())
    size, shift, place = np.zeros(len(place), np.int64), 0, place + 1
    is_open = np.ones(len(place), bool)
    while is_open.any():
        byte = np.where(is_open, content[place], 0).astype(np.int64)
        size |= (byte & 127) << shift
        place, shift = place + is_open, shift + 7
        is_open = byte > 127
    _refuse_if((size < 0).any() or (place + size > len(content) - BEHIND).any())
    return place, place + size


def _enter_list(content, place, ends, kinds):
    """Where the packed values of a Feature begin and end in each row; its kind is added to `kinds`."""
    place, ends = place.copy(), ends.copy()
    has_list = ends > place  # an empty list may be left out, and so may its values
    kinds.update((np.unique(content[place[has_list]]) >> 3).tolist())
    _refuse_if(not kinds <= {FLOAT_LIST, INT64_LIST} or len(kinds) > 1)
    place[has_list], ends[has_list] = _enter(content, place[has_list], max(kinds, default=INT64_LIST))
    has_values = ends > place
    place[has_values], ends[has_values] = _enter(content, place[has_values], 1)
    return place, ends


def _names(content, starts, ends):
    """Yields each name that some rows have at this place, and which rows, bool (rows,)."""
    sizes = ends - starts
    if (sizes == sizes[0]).all():
        letters = content[starts[:, np.newaxis] + np.arange(sizes[0])]
        if (letters == letters[0]).all():  # nearly always: rows of a file have their features in one order
            yield letters[0].tobytes().decode(), np.ones(len(sizes), bool)
            return
    names = [content[start:end].tobytes() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    for name in sorted(set(names)):
        yield name.decode(), np.array([other == name for other in names])


def _values(content, kinds, starts, ends):
    """The packed values between these places, a `Ragged`."""
    sizes = ends - starts
    content = content[places(starts, sizes)]
    if FLOAT_LIST in kinds:
        return Ragged(content.view("<f4").astype(np.float32), sizes // 4)
    is_last = content < 128
    last = np.flatnonzero(is_last)
    width = np.diff(last, prepend=-1)  # bytes of each integer
    values = (content[last] & 127).astype(np.uint64)
    for back in range(1, int(width.max(initial=1))):
        longer = np.flatnonzero(width > back)
        values[longer] = values[longer] << np.uint64(7) | (content[last[longer] - back] & 127)
    ends = np.concatenate([[0], np.cumsum(is_last)])[np.cumsum(sizes)]
    return Ragged(values.astype(np.int64), np.diff(ends, prepend=0))
