"""The page at `/`, on which a person asks the served models without writing code.

Written by hand and not with Gradio 6.31, which was tried: its packages have 92 MB and import in 3.5 seconds, a page
takes 59 requests, and axe-core reports its colours and attributes as violations of WCAG. This page takes 9 requests and
45 kB, needs only what the server needs, and keeps its state in the address.
"""

import logging
import pathlib
import traceback

import orjson
from grpc import StatusCode
from starlette.applications import Starlette
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from keras_bert_serving.errors import ServingError, invalid
from keras_bert_serving.json_tensors import read_object
from keras_bert_serving.page.panels import FieldError, panels_of
from keras_bert_serving.rest import read_body

STATIC = pathlib.Path(__file__).with_name("static")
MOST_BYTES = 1_000_000
HEADERS = {
    # The browser itself refuses whatever would be fetched from elsewhere, and scripts that a text might smuggle in.
    "content-security-policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def make_page(served):
    """The ASGI application to be mounted at `/`.

    `served` is a `models.Models`, of which this uses `models` (`name`, `signatures` and `metadata` of each), `loading`,
    `limits`, `ask` and `cut_to`. If one raises an exception that has `http_status`, the client is told its message.
    """

    async def file(request):
        path = STATIC / request.path_params.get("name", "index.html")
        if path not in STATIC.iterdir():
            return json_response({"error": f"There is no {path.name}."}, 404)
        return FileResponse(path, headers=HEADERS)

    async def models(request):
        """The served models, each with the tasks it can be asked, and how many are still being loaded."""
        found = [
            {
                "name": model.name,
                "tasks": list(panels_of(model.signatures)),
                "takes_pairs": "pairs" in model.signatures,
            }
            for model in served.models
        ]
        return json_response({"models": found, "loading": served.loading})

    async def ask(request):
        """Asks a model. The body is {"task", "model", "fields": {name: text}}; the answer {"answer", "cut_to",
        "request"}, where `cut_to` is null, or how many tokens the model read of a longer text, and `request` is the
        same request to the REST interface; or {"error"}, with "field" if one field is the reason."""
        try:
            return json_response(await answer_of(served, await body_of(request, served.limits)))
        except FieldError as error:
            return json_response({"error": str(error), "field": error.field}, 400)
        except Exception as error:
            status = getattr(error, "http_status", None)
            if status is None:
                # Without its message, which may hold a person's text.
                place = "".join(traceback.format_tb(error.__traceback__))
                logging.getLogger(__name__).error("%s on the page at\n%s", type(error).__name__, place)
                return json_response({"error": "The server failed; its log says more."}, 500)
            return json_response({"error": str(error)}, status)

    return Starlette(
        routes=[
            Route("/", file),
            Route("/page/models", models),
            Route("/page/ask", ask, methods=["POST"]),
            Route("/page/{name}", file),
        ]
    )


async def answer_of(served, asked):
    """The answer of a model, with what `ask` adds to it. Raises ServingError or FieldError."""
    model = next((model for model in served.models if model.name == asked["model"]), None)
    panel = panels_of(model.signatures).get(asked["task"]) if model else None
    if panel is None:
        message = f"No model {asked['model']!r} with the task {asked['task']!r} is served any more."
        raise ServingError(StatusCode.NOT_FOUND, message)
    signature, inputs = panel.request(asked["fields"])
    outputs = await served.ask(model, inputs, signature)
    return {
        "answer": panel.answer(asked["fields"], outputs, model.metadata),
        "cut_to": await served.cut_to(model, inputs, signature),
        "request": {
            "path": f"v1/models/{model.name}:predict",
            "body": {"signature_name": signature, "inputs": inputs},
        },
    }


async def body_of(request, limits):
    """The JSON object of a request, its texts made writable as UTF-8. Raises ServingError."""
    body = await read_body(request, min(limits.max_body_bytes, MOST_BYTES))
    try:
        asked = read_object(body)
        fields = {str(name): str(text) for name, text in asked["fields"].items()}
        return {"model": str(asked["model"]), "task": str(asked["task"]), "fields": fields}
    except (KeyError, TypeError, AttributeError):
        raise invalid('Expected {"model": ..., "task": ..., "fields": {...}}.') from None


def json_response(content, status=200):
    """An answer to the page's script."""
    return Response(orjson.dumps(content), status, {**HEADERS, "content-type": "application/json"})
