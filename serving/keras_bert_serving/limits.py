"""What a request may ask for; also the options of `keras-bert serve`, hence without heavy imports."""

import dataclasses
import typing


@dataclasses.dataclass(kw_only=True)
class Limits:
    """What a request may ask for.

    Args:
        max_body_bytes: largest request.
        max_rows: rows of a request.
        max_text_bytes: largest text, in UTF-8.
        max_answer_bytes: largest answer, in bytes of its arrays.
        max_queued_rows: texts that may wait; beyond, requests are refused with 429.
        request_seconds: how long a request may take, waiting included.
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
