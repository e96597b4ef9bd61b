"""TFRecord files without TensorFlow: for each record its length, a checksum of that, the record and its checksum.

The format is described in TensorFlow's tensorflow/core/lib/io/record_writer.h; checksums are CRC-32C, masked.
"""

import contextlib
import functools
import os
import struct

import google_crc32c

HEAD = struct.Struct("<QI")  # length of the record, checksum of the length
FOOT = struct.Struct("<I")  # checksum of the record
BUFFER_BYTES = 1 << 18


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
