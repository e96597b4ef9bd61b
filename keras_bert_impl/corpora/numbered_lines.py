"""Lines of a text file, compressed or not, as bytes and one at a time."""

import gzip
import io
import lzma
import zlib

import zstandard

CHUNK_BYTES = 1 << 20
COMPRESSIONS = (".gz", ".xz", ".zst")

# What a damaged file raises, by whichever library reads it. BadGzipFile is an OSError.
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


class NotUtf8Error(ValueError):
    """A line is not UTF-8; the message names line and byte."""


def text_lines(path):
    """Lines of a UTF-8 file as strings. Raises `NotUtf8Error`, and what `numbered_lines` raises."""
    number = 1
    for lines in _line_lists(path):
        try:
            # At once, which takes a tenth of the time; rstrip() alone would strip more than the line end.
            text = b"".join(lines).decode()
        except UnicodeDecodeError:
            yield from _decoded_one_by_one(lines, number)
        else:
            found = (text[:-1] if text.endswith("\n") else text).split("\n")
            yield from found if "\r" not in text else (line.rstrip("\r") for line in found)
        number += len(lines)


def _decoded_one_by_one(lines, first_number):
    for number, line in enumerate(lines, start=first_number):
        try:
            yield line.rstrip(b"\r\n").decode()
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise NotUtf8Error(f"line {number}: byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8.") from error


def numbered_lines(path):
    """(1-based number, bytes without line end) of every line; a byte order mark is dropped.

    Args:
        path: `pathlib.Path`; .gz, .xz and .zst are decompressed while reading.

    Raises: one of `READ_ERRORS`, after the lines that could be read.
    """
    number = 0
    for lines in _line_lists(path):
        for line in lines:
            number += 1
            yield number, line.rstrip(b"\r\n")


def _line_lists(path):
    """Lists of consecutive lines with their ends, of about CHUNK_BYTES, without a byte order mark.

    What was read before an error comes before it.
    """
    with _opened(path) as stream:
        lines, size, is_first = [], 0, True
        try:
            for line in stream:
                if is_first:
                    line, is_first = line.removeprefix(b"\xef\xbb\xbf"), False
                lines.append(line)
                size += len(line)
                if size >= CHUNK_BYTES:
                    yield lines
                    lines, size = [], 0
        except READ_ERRORS:
            if lines:
                yield lines
            raise
        if lines:
            yield lines


def _opened(path):
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix == ".xz":
        return lzma.open(path)
    if path.suffix == ".zst":
        return io.BufferedReader(_ZstandardFile(path.open("rb")), CHUNK_BYTES)
    return path.open("rb")


class _ZstandardFile(io.RawIOBase):
    """Decompressed bytes of a .zst file. zstandard's own reader takes a file that was cut short for a whole one.

    Args:
        compressed: binary file; closed together with this one.

    Raises: EOFError at the end of a file that stops inside a frame.
    """

    def __init__(self, compressed):
        self.compressed = compressed
        self.frame = None
        self.rest = b""

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self.rest:
            chunk = self._next_chunk()
            if not chunk:
                return 0
            self.rest = self._decompressed(chunk)
        size = min(len(buffer), len(self.rest))
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        return size

    def close(self):
        self.compressed.close()
        super().close()

    def _next_chunk(self):
        if self.frame is not None and self.frame.eof:
            chunk, self.frame = self.frame.unused_data, None
            if chunk:
                return chunk
        chunk = self.compressed.read(CHUNK_BYTES // 8)
        if not chunk and self.frame is not None:
            raise EOFError("Compressed file ended before the end of its last frame")
        return chunk

    def _decompressed(self, chunk):
        if self.frame is None:
            self.frame = zstandard.ZstdDecompressor().decompressobj()
        return self.frame.decompress(chunk)
