"""The REST interface, with the addresses, requests and answers of TensorFlow Serving.

The addresses of other servers of embeddings and scores are in `embeddings`.

POST /v1/models/NAME[/versions/N]:predict
GET  /v1/models/NAME[/versions/N][/metadata]
GET  /healthz  /readyz  /metrics  /monitoring/prometheus/metrics  /openapi.json
"""

import asyncio
import codecs
import functools
import pathlib
import re
import time
import urllib.parse

from grpc import StatusCode
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from keras_bert_serving import embeddings, json_tensors, model_messages
from keras_bert_serving.errors import ServingError, error_of, invalid, place_of
from keras_bert_serving.request_inputs import bytes_of
from keras_bert_serving.request_log import ID, RequestEntry, request_id

OF_MODEL = r"/v1/models/(?P<model>[^/:]+)(?:/versions/(?P<version>\d{1,30}))?"
ASK = re.compile(rf"{OF_MODEL}:(?P<method>predict)")
LOOK = re.compile(rf"{OF_MODEL}(?P<metadata>/metadata)?")
DESCRIPTION = pathlib.Path(__file__).with_name("openapi.json")
LARGE = 10_000  # bytes
MALFORMED = (
    "Malformed request: {}: models answer at /v1/models/NAME, and at /v1/models/NAME:predict a POST with a body such "
    'as {{"instances": ["a text"]}}.'
)
LATE = "There was no time to see which texts are empty or were truncated (option --request_seconds)."
TIMES_READ = 8  # the limit of a body


def make_app(models, log, metrics, hosts=None, page=None):
    """The ASGI application.

    Args:
        models: models.Models.
        log: RequestLog.
        metrics: Metrics.
        hosts: the names by which the server may be addressed, or None for any: a server of this machine alone must not
            answer a page from elsewhere whose name was made to point here.
        page: an ASGI application to show at `/` and at what is under `/page/`, or None.
    """

    def ready(request):
        """200 when all models are loaded, but for those that cannot be; 503 before, and when the server is to end."""
        without = f", without {', '.join(models.failures)}" if models.failures else ""
        return PlainTextResponse(f"ready{without}\n") if models.is_ready else PlainTextResponse("not ready\n", 503)

    def show_metrics(request):
        content, kind = metrics.page()
        return Response(content, media_type=kind)

    others = {
        "/v1/embeddings": embeddings.vectors,
        "/rerank": embeddings.ranks,
        "/v1/rerank": embeddings.ranked_documents,
        "/v2/rerank": embeddings.ranked_documents,
    }
    routes = [
        *(
            Route(path, functools.partial(answer_as, models, log, make), methods=["POST"])
            for path, make in others.items()
        ),
        Route("/v1/models", lambda request: embeddings.listed(models)),
        Route("/v1/{rest:path}", functools.partial(answer, models, log), methods=["GET", "POST"]),
        Route("/openapi.json", lambda request: FileResponse(DESCRIPTION)),
        Route("/healthz", lambda request: PlainTextResponse("ok\n")),
        Route("/readyz", ready),
        Route("/metrics", show_metrics),
        Route("/monitoring/prometheus/metrics", show_metrics),
    ]
    if page is not None:
        routes += [Route("/", page), Route("/page/{rest:path}", page)]
    return OwnClients(Starlette(routes=routes, exception_handlers={404: not_found, 405: not_found}), hosts)


def plain_error(message):
    """The body of an error, as TensorFlow Serving has it."""
    return {"error": message}


async def answer_as(models, log, make, request):
    """The response that `make` gives to a request's body."""

    async def respond(entry):
        body = await read_body(request, models.limits.max_body_bytes)
        return await while_connected(request, make(models, body, entry))

    entry = RequestEntry("rest", request.url.path.rpartition("/")[2], request_id(request.headers.get(ID)))
    return await logged(models, log, entry, respond, embeddings.error_of_clients)


async def answer(models, log, request):
    """The response to any other request under /v1."""
    path = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
    asked = (ASK if request.method == "POST" else LOOK).fullmatch(path)
    parts = asked.groupdict() if asked else {}
    method = parts.get("method") or ("metadata" if parts.get("metadata") else "status")
    name = urllib.parse.unquote(parts.get("model") or "")
    entry = RequestEntry("rest", method, request_id(request.headers.get(ID)), name)
    return await logged(models, log, entry, functools.partial(answer_of, models, request, path, parts))


async def logged(models, log, entry, respond, form=plain_error):
    """The response that `respond` makes, or that of its error, after it is logged; `form` makes the body of an error's
    message."""
    try:
        response = await respond(entry)
    except ClientDisconnect:
        response = Response(status_code=499)  # nobody reads it; the log does
    except Exception as failure:
        response = error_response(failure, form)
        if response.status_code >= 500 and not isinstance(failure, ServingError):
            log.event("failed", method=entry.method, model=entry.model, error=place_of(failure))
    response.headers[ID] = entry.id
    log.request(entry, response.status_code, models.names)
    return response


async def answer_of(models, request, path, parts, entry):
    """`answer` of a request at `path`, which has the `parts` of OF_MODEL. Raises ServingError."""
    if not parts:
        raise invalid(MALFORMED.format(f"{request.method} {path}"))
    version = None if parts["version"] is None else int(parts["version"])
    if entry.method == "status":
        return JSONResponse(model_messages.as_json(model_messages.status(models, entry.model, version)))
    servable = models.find(entry.model, version)
    if entry.method == "metadata":
        spec = {"name": servable.name, "signature_name": "", "version": str(servable.version)}
        signatures = model_messages.as_json(model_messages.signature_map(servable))
        return JSONResponse({"model_spec": spec, "metadata": {model_messages.SIGNATURE_DEF: signatures}})
    body = await read_body(request, models.limits.max_body_bytes)
    return await while_connected(request, prediction(models, servable, body, entry))


async def prediction(models, servable, body, entry):
    """The response to a predict request. Raises ServingError."""
    limits, began = models.limits, time.monotonic()

    def left():
        return limits.request_seconds - (time.monotonic() - began)

    read = functools.partial(json_tensors.read_predict, body, servable, limits)
    in_rows, signature, inputs = await away_if_large(len(body), read)
    entry.answered_by(servable, signature.name, inputs)
    outputs = await models.ask(servable, inputs, signature.name, left())
    try:
        async with asyncio.timeout(left()):
            check = functools.partial(servable.text_checks.warnings, signature, inputs)
            warnings = await away_if_large(bytes_of(inputs), check)
    except TimeoutError:
        warnings = [LATE]
    answer = functools.partial(json_tensors.predict_answer, outputs, in_rows, warnings)
    return Response(await away_if_large(bytes_of(outputs), answer), media_type="application/json")


async def read_body(request, most):
    """The bytes of a request, without a byte order mark. Raises ServingError if they are above `most`; how slowly they
    may come is the business of a proxy."""
    chunks, size, declared = [], 0, request.headers.get("content-length", "")
    # A body above the limit is read, and forgotten: a client that is still sending does not see an answer.
    if not (declared.isdigit() and int(declared[:20]) > TIMES_READ * most):
        async for chunk in request.stream():
            size += len(chunk)
            if size <= most:
                chunks.append(chunk)
            elif size > TIMES_READ * most:
                break
        if size <= most:
            return b"".join(chunks).removeprefix(codecs.BOM_UTF8)
    raise ServingError(
        StatusCode.INVALID_ARGUMENT,
        f"The request is larger than {most} bytes (option --max_body_bytes): send several requests.",
        http_status=413,
    )


async def away_if_large(size, make):
    """What `make` returns; in another thread if it reads so many bytes that all other requests would wait."""
    return await asyncio.to_thread(make) if size > LARGE else make()


async def while_connected(request, answering):
    """What the coroutine returns; it is cancelled if the client goes away, and gives up its place in the queue."""

    async def disconnected():  # the body must have been read
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, gone = asyncio.ensure_future(answering), asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


def error_response(failure, form=plain_error):
    """The response to a request that failed, with the body that `form` makes of a message."""
    error = error_of(failure)
    headers = {"Retry-After": "1"} if error.http_status in (429, 503) else {}
    if error.http_status == 413:
        headers["Connection"] = "close"  # the rest of the request is not read
    return JSONResponse(form(str(error)), error.http_status, headers)


async def not_found(request, failure):
    """The response to an address or method that does not exist, in the form of all errors."""
    error = MALFORMED.format(f"{request.method} {request.url.path[:500]}")
    return JSONResponse({"error": error}, failure.status_code)


class OwnClients:
    """An ASGI application that refuses what a page of another site lets a browser send.

    Args:
        app: the application.
        hosts: as for `make_app`.
    """

    def __init__(self, app, hosts):
        self._app, self._hosts = app, hosts

    async def __call__(self, scope, receive, send):
        headers = dict(scope["headers"]) if scope["type"] == "http" else {}
        host, origin = (headers.get(name, b"").decode("latin-1").lower() for name in (b"host", b"origin"))
        try:
            name, site = urllib.parse.urlsplit(f"//{host}").hostname, urllib.parse.urlsplit(origin).netloc
        except ValueError:
            error = invalid(f"The header Host {host[:100]!r} or Origin {origin[:100]!r} is no address.")
            return await error_response(error)(scope, receive, send)
        # A browser always names the host, a probe need not.
        if host and self._hosts is not None and name not in self._hosts:
            known = " or ".join(sorted(self._hosts))
            message = f"This server is addressed as {known}, not as {host[:100]!r} (option --host_names)."
        elif origin and site != host:
            message = f"Requests from pages of {origin[:100]} are not answered."
        else:
            return await self._app(scope, receive, send)
        await error_response(ServingError(StatusCode.PERMISSION_DENIED, message))(scope, receive, send)
