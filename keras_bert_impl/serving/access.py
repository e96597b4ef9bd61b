"""API keys: who may ask."""

import base64
import binascii
import hmac
import pathlib

from grpc import StatusCode

from keras_bert_impl.serving.errors import ServingError


class ApiKeys:
    """The keys that clients must show; without any, everybody may ask.

    Args:
        keys: strings.
    """

    def __init__(self, keys=()):
        self._keys = [key.encode("utf-8") for key in keys]

    @classmethod
    def from_file(cls, path):
        """The keys of a file with one key on each line; lines that begin with # are comments. Raises ValueError."""
        lines = [line.strip() for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if not keys:
            raise ValueError(f"{path} holds no key: write one key on each line.")
        return cls(keys)

    def check(self, headers):
        """Raises ServingError unless the headers show a key.

        Args:
            headers: a mapping with lower-case names: `authorization: Bearer KEY`, `x-api-key: KEY`, or, from a browser,
                `authorization: Basic`, with the key as password and any user name.
        """
        if not self._keys:
            return
        shown = shown_key(headers)
        # All keys are compared, each in constant time: the time says nothing about a key.
        if shown is None or not any([hmac.compare_digest(shown, key) for key in self._keys]):
            raise ServingError(
                StatusCode.UNAUTHENTICATED,
                "This server asks for an API key: send the header 'Authorization: Bearer KEY'.",
            )


def shown_key(headers):
    """The key that a request shows, in bytes, or None."""
    kind, _, rest = (headers.get("authorization") or "").partition(" ")
    if kind.lower() == "bearer":
        return bytes_of_header(rest.strip())
    if kind.lower() == "basic":
        try:
            _, colon, password = base64.b64decode(rest, validate=True).partition(b":")
        except (binascii.Error, ValueError):
            return None
        return password if colon else None
    key = headers.get("x-api-key")
    return None if key is None else bytes_of_header(key)


def bytes_of_header(value):
    """The bytes that a client sent: headers are read as Latin-1, one character for each byte."""
    return value.encode("latin-1", "replace")
