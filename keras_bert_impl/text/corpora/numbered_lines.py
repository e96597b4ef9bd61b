"""Reads the lines of a text file, compressed or not, one at a time."""

import functools
import gzip
import itertools
import lzma
import zlib

CHUNK_BYTES = 1 << 17
FIRST_BYTES = [bytes([byte]) for byte in range(256) if byte & 0xC0 != 0x80]  # of a character in UTF-8
COMPRESSIONS = (".gz", ".xz", ".zst")

# The errors that the reading libraries raise for a damaged file. BadGzipFile is an OSError.
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)


class NotUtf8Error(ValueError):
    """A file is not UTF-8; the message names the line and the byte, or the likely encoding."""


def text_lines(path, longest=None):
    """Yields the lines of a UTF-8 file as strings; one of more than `longest` bytes, if that is given, in parts.

    Raises `NotUtf8Error` and the errors of `numbered_lines`.
    """
    number = 1
    for block in _blocks(path, longest):
        try:
            # Decoding a block at once takes a tenth of the time; rstrip() alone would strip more than the line end.
            text = block.decode()
        except UnicodeDecodeError:
            yield from _decoded_one_by_one(block, number)
        else:
            found = (text[:-1] if text.endswith("\n") else text).split("\n")
            yield from found if "\r" not in text else (line.rstrip("\r") for line in found)
        number += block.count(b"\n")


def _decoded_one_by_one(block, first_number):
    for number, line in enumerate(_lines(block), start=first_number):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise NotUtf8Error(f"line {number}: byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8.") from error


def numbered_lines(path):
    """Iterates over (1-based number, bytes without line end) of all lines; a byte order mark is dropped.

    Args:
        path: `pathlib.Path`; .gz, .xz and .zst are decompressed while reading.

    Raises: one of `READ_ERRORS`, after yielding the lines that could be read.
    """
    return enumerate(itertools.chain.from_iterable(map(_lines, _blocks(path))), start=1)


def _lines(block):
    return (line.rstrip(b"\r") for line in block.removesuffix(b"\n").split(b"\n"))


def _blocks(path, longest=None):
    """Yields a file in blocks of whole lines of about CHUNK_BYTES, without a byte order mark, and a line of more than
    `longest` bytes in blocks without a line end.

    Whole lines that were read before an error are yielded before it is raised.
    """
    with _opened(path) as stream:
        parts, is_first = [], True
        read = functools.partial(stream.read1, CHUNK_BYTES)
        for chunk in _zstandard_chunks(stream) if path.suffix == ".zst" else iter(read, b""):
            if is_first:
                _refuse_utf16(chunk)
                chunk, is_first = chunk.removeprefix(b"\xef\xbb\xbf"), False
            lines, end, rest = chunk.rpartition(b"\n")
            if end:
                yield b"".join([*parts, lines, end])
                parts = []
            parts.append(rest)
            if longest is not None and sum(map(len, parts)) > longest:
                line = b"".join(parts)
                # Behind the last space or, in a script without spaces, before the last byte that begins a character.
                cut = line.rfind(b" ") + 1 or max(line.rfind(byte) for byte in FIRST_BYTES)
                if cut > 0:
                    yield line[:cut]
                    parts = [line[cut:]]
        if any(parts):
            yield b"".join(parts)


def _refuse_utf16(chunk):
    # Without a byte order mark most of it is valid UTF-8, with a zero byte for each Latin letter, or for each space and
    # line break: 8 % of the bytes in Russian text. They are the first or the second bytes of characters.
    zeros, seconds = chunk.count(0), chunk[1::2].count(0)
    if 100 * zeros >= len(chunk):
        reason = "as in a damaged file or one that is not text; remove them (tr -d '\\000')."
        if min(seconds, zeros - seconds) < 0.1 * zeros:
            order = "LE" if seconds > zeros - seconds else "BE"
            reason = f"as in UTF-16, not UTF-8; convert the file to UTF-8 (iconv -f UTF-16{order} -t UTF-8)."
        raise NotUtf8Error(f"{zeros / len(chunk):.0%} of the first bytes are zero, {reason}")


def _opened(path):
    if path.suffix in COMPRESSIONS and path.stat().st_size == 0:  # which not all of the libraries notice
        raise EOFError("Compressed file ended before its first frame: it has zero bytes")
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix == ".xz":
        return lzma.open(path)
    return path.open("rb")


def _zstandard_chunks(stream):
    """The content of a .zst file in parts; zstandard's own reader does not notice that a file is truncated.

    Raises: EOFError at the end of a file that stops inside a frame.
    """
    import zstandard  # which only the extra `training` installs

    frame = None
    for chunk in iter(functools.partial(stream.read, CHUNK_BYTES), b""):
        while chunk:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                found = frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from None
            yield from (found[begin : begin + CHUNK_BYTES] for begin in range(0, len(found), CHUNK_BYTES))
            chunk, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("Compressed file ended before the end of its last frame")
