"""TFRecord files without TensorFlow: for each record its length, a checksum of that, the record and its checksum.

The format is described in TensorFlow's tensorflow/core/lib/io/record_writer.h; checksums are CRC-32C, masked.
"""

import array
import contextlib
import functools
import os
import struct

import google_crc32c

HEAD = struct.Struct("<QI")  # length of the record, checksum of the length
FOOT = struct.Struct("<I")  # checksum of the record
BUFFER_BYTES = 1 << 18
ROW_BYTES = 1 << 12  # read at once where the next record is anywhere: more than a row of 512 tokens


class DamagedRecords(ValueError):
    """A record does not have its checksum, or the file ends within a record."""


def write_records(path, records):
    """Writes one file of records. The file gets its name only when it is complete: a half-written one would be taken
    for a whole one by the next run.

    Args:
        path: the file; an existing one is replaced.
        records: iterable of bytes.

    Returns: the number of records written.
    """
    partial, count = f"{path}.partial", 0
    try:
        with open(partial, "wb", BUFFER_BYTES) as file:
            for record in records:
                head = HEAD.pack(len(record), _checksum_of_length(len(record)))
                file.write(b"".join([head, record, FOOT.pack(_checksum(record))]))
                count += 1
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)
        raise
    return count


class RecordReader:
    """Reads the records of a TFRecord file in order.

    Raises: DamagedRecords with the place in the file, if a record is not as it was written.
    """

    def __init__(self, path, buffer_bytes=BUFFER_BYTES):
        self.path, self._file = path, open(path, "rb", buffer_bytes)

    def read(self, count):
        """The next `count` records, a list of bytes; fewer at the end of the file."""
        return self._next(count, self._record)

    def skip(self, count):
        """Passes over `count` records without looking at them; returns a list with None for each."""
        return self._next(count, self._passed)

    def seek(self, offset):
        """Goes to the record that begins at this byte."""
        self._file.seek(offset)

    def offsets(self):
        """The byte at which each of the next records begins, a list."""
        found = [self._file.tell()]
        while self.skip(1):
            found.append(self._file.tell())
        return found[:-1]

    def close(self):
        self._file.close()

    def _next(self, count, content):
        found = []
        while len(found) < count and (head := self._file.read(HEAD.size)):
            if len(head) < HEAD.size:
                raise self._damaged()
            length, checksum = HEAD.unpack(head)
            if checksum != _checksum_of_length(length):
                raise self._damaged()
            found.append(content(length))
        return found

    def _record(self, length):
        content = self._file.read(length + FOOT.size)
        record = content[:length]
        if len(content) < length + FOOT.size or FOOT.pack(_checksum(record)) != content[length:]:
            raise self._damaged()
        return record

    def _passed(self, length):
        self._file.seek(length + FOOT.size, os.SEEK_CUR)

    def _damaged(self):
        return DamagedRecords(f"{self.path} is damaged in the record before byte {self._file.tell():,}.")


class RecordsByPlace:
    """Reads the records of TFRecord files in any order.

    Args:
        open_files: the most files that are open at a time.
    """

    def __init__(self, open_files):
        self.open_files, self._offsets, self._readers = open_files, {}, {}

    def read(self, path, place):
        """The record of this number in a file, bytes. Raises: DamagedRecords, also if the file has fewer records."""
        reader = self._readers.pop(path, None) or RecordReader(path, ROW_BYTES)
        self._readers[path] = reader  # now the last one used
        if path not in self._offsets:
            self._offsets[path] = array.array("q", reader.offsets())
        if len(self._readers) > self.open_files:
            self._readers.pop(next(iter(self._readers))).close()
        if place >= len(self._offsets[path]):
            raise DamagedRecords(f"{path} has {len(self._offsets[path]):,} rows, fewer than expected.")
        reader.seek(self._offsets[path][place])
        [record] = reader.read(1)
        return record


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
