"""The one exception of the server: a status, as gRPC names it, and a message for the client."""

import pathlib
import traceback

from grpc import StatusCode

# The HTTP status of each gRPC status, as TensorFlow Serving chooses it.
HTTP_STATUS = {
    StatusCode.CANCELLED: 499,
    StatusCode.INVALID_ARGUMENT: 400,
    StatusCode.FAILED_PRECONDITION: 400,
    StatusCode.OUT_OF_RANGE: 400,
    StatusCode.UNAUTHENTICATED: 401,
    StatusCode.PERMISSION_DENIED: 403,
    StatusCode.NOT_FOUND: 404,
    StatusCode.ALREADY_EXISTS: 409,
    StatusCode.ABORTED: 409,
    StatusCode.RESOURCE_EXHAUSTED: 429,
    StatusCode.UNIMPLEMENTED: 501,
    StatusCode.UNAVAILABLE: 503,
    StatusCode.DEADLINE_EXCEEDED: 504,
}


LONGEST_MESSAGE = 1000


class ServingError(Exception):
    """What a client is told instead of an answer.

    Args:
        code: a grpc.StatusCode.
        message: what was wrong, what was expected, and what to do.
        http_status: for statuses that gRPC does not distinguish, such as 413; default follows from the code.
    """

    def __init__(self, code, message, http_status=None):
        # A message may quote what the client sent, a name of a megabyte, say.
        super().__init__(message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]} ...")
        self.code = code
        self.http_status = http_status or HTTP_STATUS.get(code, 500)


def invalid(message):
    """The error of a request that can never succeed as it is."""
    return ServingError(StatusCode.INVALID_ARGUMENT, message)


def first_line(message):
    """The line of an error's message that says what is wrong: TensorFlow adds a heading and its graph's names."""
    lines = [line for line in str(message).splitlines() if line and line != "Graph execution error:"]
    return lines[0][:500] if lines else ""


def place_of(failure):
    """Type of an exception and the lines that led to it, for the log: its message may hold a client's text."""
    frames = traceback.extract_tb(failure.__traceback__)[-6:]
    lines = [f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in frames]
    return f"{type(failure).__name__} at {' > '.join(lines)}"


def error_of(failure):
    """Any exception as a ServingError: TensorFlow's own keep their status; what nobody foresaw becomes INTERNAL.

    The message of an unforeseen failure stays in the server's log: it may hold a client's text.
    """
    if isinstance(failure, ServingError):
        return failure
    if isinstance(failure, UnicodeDecodeError):  # also of TensorFlow, whose error quotes the client's bytes
        return invalid("The model refuses the request, which has a text that is not valid UTF-8.")
    if isinstance(failure, MemoryError) or type(failure).__name__ == "ResourceExhaustedError":  # of tf.errors
        message = "The model has not the memory that this request takes: ask about fewer or shorter texts."
        return ServingError(StatusCode.RESOURCE_EXHAUSTED, message, http_status=413)
    number = getattr(failure, "error_code", None)  # of tf.errors.OpError: the numbers are those of gRPC
    for code in StatusCode:
        if code.value[0] == number and code in HTTP_STATUS:
            return ServingError(code, first_line(getattr(failure, "message", failure)))
    return ServingError(StatusCode.INTERNAL, f"The server failed with {type(failure).__name__}; its log says more.")
