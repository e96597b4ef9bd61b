"""The REST interface, with the addresses, requests and answers of TensorFlow Serving.

POST /v1/models/NAME[/versions/N|/labels/L]:predict
GET  /v1/models/NAME[/versions/N|/labels/L][/metadata]
GET  /healthz  /readyz  /metrics  /monitoring/prometheus/metrics
"""

import asyncio
import re
import urllib.parse

from grpc import StatusCode
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from keras_bert_impl.serving import json_tensors, model_messages
from keras_bert_impl.serving.errors import ServingError, error_of, invalid, place_of
from keras_bert_impl.serving.request_inputs import bytes_of
from keras_bert_impl.serving.request_log import RequestEntry
from keras_bert_impl.serving.signatures import find_signature

OF_MODEL = r"/v1/models/(?P<model>[^/:]+)(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
ASK = re.compile(rf"{OF_MODEL}:(?P<method>predict)")
LOOK = re.compile(rf"{OF_MODEL}(?P<metadata>/metadata)?")
LARGEST_VERSION = 2**63 - 1
# A body above the limit is read to its end, and forgotten, up to this many times the limit: a client that is still
# sending when the connection is closed does not see the answer.
TIMES_READ = 8
LARGE_ANSWER = 100_000  # bytes


def make_app(manager, log, keys, hosts=None, page=None):
    """The ASGI application.

    Args:
        manager: ModelManager.
        log: RequestLog.
        keys: ApiKeys; health is open to all.
        hosts: the names by which the server may be addressed, or None for any: a server of this machine alone must not
            answer a page from elsewhere whose name was made to point here.
        page: an ASGI application to show at `/` and at what is under `/page/`, or None.
    """
    interface = RestInterface(manager, log, keys)
    routes = [
        Route("/v1/{rest:path}", interface.answer, methods=["GET", "POST"]),
        Route("/healthz", lambda request: PlainTextResponse("ok\n")),
        Route("/readyz", interface.readiness),
        Route("/metrics", interface.show_metrics),
        Route("/monitoring/prometheus/metrics", interface.show_metrics),
    ]
    if page is not None:
        page = BehindKeys(page, keys)
        routes += [Route("/", page), Route("/page/{rest:path}", page)]
    return OwnClients(Starlette(routes=routes, exception_handlers={404: not_found, 405: not_found}), hosts)


class RestInterface:
    """Answers the requests of the REST interface; arguments as for `make_app`."""

    def __init__(self, manager, log, keys):
        self._manager, self._log, self._keys = manager, log, keys

    async def answer(self, request):
        """The response to any request under /v1."""
        path = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
        asked = (ASK if request.method == "POST" else LOOK).fullmatch(path)
        parts = asked.groupdict() if asked else {}
        method = parts.get("method") or ("metadata" if parts.get("metadata") else "status")
        entry = RequestEntry("rest", method, urllib.parse.unquote(parts.get("model") or ""))
        try:
            response = await self._answer(request, path, parts, entry)
        except ClientDisconnect:
            response = Response(status_code=499)  # nobody reads it; the log does
        except Exception as failure:
            response = error_response(failure)
            if response.status_code >= 500 and not isinstance(failure, ServingError):
                self._log.event("failed", method=method, model=entry.model, error=place_of(failure))
        self._log.request(entry, response.status_code, self._manager.names)
        return response

    async def _answer(self, request, path, parts, entry):
        self._keys.check(request.headers)
        if not parts:
            if path.rstrip("/") == "/v1/models" and request.method == "GET":
                raise invalid("Missing model name in request.")
            raise invalid(f"Malformed request: {request.method} {path}")
        version = None if parts["version"] is None else int(parts["version"][:20])
        if version is not None and version > LARGEST_VERSION:
            raise invalid(f"Failed to convert version: {parts['version'][:40]} to numeric.")
        spec = entry.model, version, urllib.parse.unquote(parts["label"] or "")
        if entry.method == "status":
            return JSONResponse(model_messages.status_json(self._manager.statuses(*spec)))
        if entry.method == "metadata":
            with self._manager.using(*spec) as servable:
                return JSONResponse(model_messages.metadata_json(servable))
        body = await read_body(request, self._manager.limits)
        with self._manager.using(*spec) as servable:
            return await while_connected(request, self._predict(servable, body, entry))

    async def _predict(self, servable, body, entry):
        asked = json_tensors.read_predict(body)
        signature = find_signature(servable, asked.signature)
        inputs = json_tensors.inputs_of(asked, signature, self._manager.limits)
        entry.answered_by(servable, signature.name, inputs)
        outputs = await self._manager.ask(servable, inputs, signature.name)
        in_rows = asked.rows is not None
        return json_response(await away_if_large(outputs, lambda: json_tensors.predict_answer(outputs, in_rows)))

    async def readiness(self, request):
        """200 if every model answers; 503 while one is missing, or the server is about to end."""
        ready = self._manager.is_ready
        return PlainTextResponse("ready\n" if ready else "not ready\n", 200 if ready else 503)

    async def show_metrics(self, request):
        """What Prometheus reads, with a key if the server asks for one."""
        try:
            self._keys.check(request.headers)
        except ServingError as error:
            return error_response(error)
        content, kind = self._manager.metrics.page()
        return Response(content, media_type=kind)


async def read_body(request, limits):
    """The bytes of a request. Raises ServingError if it is larger than the limit, or sent too slowly."""
    most = limits.max_body_bytes
    declared = request.headers.get("content-length", "")
    too_large = ServingError(
        StatusCode.INVALID_ARGUMENT,
        f"The request is larger than {most} bytes (option --max_body_bytes): send several requests.",
        http_status=413,
    )
    if declared.isdigit() and int(declared[:20]) > most * TIMES_READ:
        raise too_large
    chunks, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= most:
                    chunks.append(chunk)
                elif size > most * TIMES_READ:
                    raise too_large
    except TimeoutError:
        raise ServingError(
            StatusCode.DEADLINE_EXCEEDED,
            f"The request was not received within {limits.body_seconds:g} seconds (option --body_seconds).",
            http_status=408,
        ) from None
    if size > most:
        raise too_large
    return b"".join(chunks)


async def away_if_large(outputs, make):
    """What `make` makes of outputs; in another thread if they are so large that all other requests would wait."""
    return await asyncio.to_thread(make) if bytes_of(outputs) > LARGE_ANSWER else make()


async def while_connected(request, answering):
    """What the coroutine returns; it is cancelled if the client goes away, and gives up its place in the queue."""
    task = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(wait_for_disconnect(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def wait_for_disconnect(request):
    """Returns when the client has closed the connection; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def json_response(body):
    """A response with JSON that is already bytes."""
    return Response(body, media_type="application/json")


def error_response(failure):
    """The response to a request that failed: {"error": message}."""
    error = error_of(failure)
    headers = {}
    if error.http_status in (429, 503):
        headers["Retry-After"] = "1"
    if error.http_status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="keras-bert", charset="UTF-8"'
    if error.http_status in (408, 413):
        headers["Connection"] = "close"  # the rest of the request is not read
    return JSONResponse({"error": str(error)}, error.http_status, headers)


async def not_found(request, failure):
    """The response to an address or method that does not exist, in the form of all errors."""
    message = f"Malformed request: {request.method} {request.url.path}: models answer at /v1/models/NAME."
    return JSONResponse({"error": message}, failure.status_code)


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
        name = urllib.parse.urlsplit(f"//{host}").hostname
        if self._hosts is not None and name not in self._hosts:
            message = f"This server is addressed as {' or '.join(sorted(self._hosts))}, not as {host[:100]!r}."
        elif origin and urllib.parse.urlsplit(origin).netloc != host:
            message = f"Requests from pages of {origin[:100]} are not answered."
        else:
            return await self._app(scope, receive, send)
        await error_response(ServingError(StatusCode.PERMISSION_DENIED, message))(scope, receive, send)


class BehindKeys:
    """An ASGI application for clients that show a key.

    Args:
        app: the application.
        keys: ApiKeys.
    """

    def __init__(self, app, keys):
        self._app, self._keys = app, keys

    async def __call__(self, scope, receive, send):
        try:
            self._keys.check({name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]})
        except ServingError as error:
            return await error_response(error)(scope, receive, send)
        await self._app(scope, receive, send)
