"""What a request may ask for; also the options of `keras-bert serve`, hence without heavy imports."""

import dataclasses
import typing


@dataclasses.dataclass(kw_only=True)
class Limits:
    """What a request may ask for.

    Args:
        max_body_bytes: largest request, in bytes.
        max_rows: largest number of texts in a request.
        max_text_bytes: largest text, in bytes of UTF-8.
        max_answer_bytes: largest answer, in bytes of its arrays.
        max_queued_rows: largest number of waiting texts; further requests get HTTP 429.
        request_seconds: longest time for a request, in seconds, including the wait for other requests.
    """

    TITLE: typing.ClassVar = "limits"

    max_body_bytes: int = 4 * 2**20
    max_rows: int = 1024
    max_text_bytes: int = 20_000
    max_answer_bytes: int = 64 * 2**20
    max_queued_rows: int = 2048
    request_seconds: float = 30.0

    def check(self, option, size, has):
        """Raises ServingError if a size is above the limit of this name; `has` says what has it, with {} for it."""
        from keras_bert_serving.errors import invalid

        if size > getattr(self, option):
            raise invalid(f"{has.format(size)}; this server takes at most {getattr(self, option)} (option --{option}).")
