"""What clients of embedding servers ask: vectors as OpenAI's clients do, scores as those of text-embeddings-inference
and of Cohere do.

POST /v1/embeddings                 {"model", "input", "encoding_format", "dimensions"}
GET  /v1/models                     the models, as OpenAI lists them
POST /rerank                        {"query", "texts", "raw_scores", "return_text", "model"}: text-embeddings-inference
POST /v1/rerank  /v2/rerank         {"query", "documents", "top_n", "return_documents", "model"}: Cohere

"model" is the name of a served model; it may be missing for scores if one model alone gives them. Texts that the model
reads in part are counted in "warnings", but for text-embeddings-inference's form, which has no place for them, and
refused with "truncate": false.
"""

import asyncio
import base64

import numpy as np
from starlette.responses import JSONResponse

from keras_bert_impl.models.answers import of_length_one, sigmoid
from keras_bert_serving.errors import invalid
from keras_bert_serving.json_tensors import read_object
from keras_bert_serving.request_inputs import check_inputs, shortened

# The output that answers, and the signature that has it.
VECTOR, SCORE = ("vector", "serving_default"), ("value", "pairs")


async def vectors(models, body, entry):
    """The response to /v1/embeddings. Raises ServingError."""
    asked = read_object(body)
    texts = asked.get("input")
    texts = texts_in([texts] if isinstance(texts, str) else texts, "input")
    encoding, size = asked.get("encoding_format") or "float", asked.get("dimensions")
    if encoding not in ("float", "base64"):
        raise invalid(f"encoding_format is {shortened(encoding)}, expected 'float' or 'base64'.")
    servable = servable_for(models, asked.get("model"), VECTOR)
    found, tokens, warnings = await outputs_of(models, servable, VECTOR, {"text": texts}, asked, entry)
    if size is not None:
        if type(size) is not int or not 1 <= size <= found.shape[1]:
            raise invalid(f"dimensions is {shortened(size)}, expected 1 to {found.shape[1]}, the width of the vectors.")
        found = of_length_one(found[:, :size])  # of a model that was trained for it
    found = found.astype("<f4")
    written = found.tolist() if encoding == "float" else [base64.b64encode(row.tobytes()).decode() for row in found]
    data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(written)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    answer = {"object": "list", "data": data, "model": servable.name, "usage": usage}
    return JSONResponse(answer | ({"warnings": warnings} if warnings else {}))


def listed(models):
    """The response to GET /v1/models."""
    data = [{"id": each.name, "object": "model", "created": 0, "owned_by": "keras_bert_impl"} for each in models.models]
    return JSONResponse({"object": "list", "data": data})


async def ranks(models, body, entry):
    """The response to /rerank. Raises ServingError."""
    asked = read_object(body)
    texts = texts_in(asked.get("texts"), "texts")
    scores, *_ = await scores_of(models, asked, texts, entry, is_raw=bool(asked.get("raw_scores")))
    shown = [{"text": text} for text in texts] if asked.get("return_text") else None
    return JSONResponse(best_first("score", scores, shown))


async def ranked_documents(models, body, entry):
    """The response to Cohere's form. Raises ServingError."""
    asked = read_object(body)
    documents = asked.get("documents")
    if isinstance(documents, list):
        documents = [one.get("text") if isinstance(one, dict) else one for one in documents]
    texts, most = texts_in(documents, "documents"), asked.get("top_n")
    if most is not None and (type(most) is not int or most < 1):
        raise invalid(f"top_n is {shortened(most)}, expected a number above 0.")
    scores, servable, tokens, warnings = await scores_of(models, asked, texts, entry)
    shown = [{"document": {"text": text}} for text in texts] if asked.get("return_documents") else None
    results = best_first("relevance_score", scores, shown)[:most]
    meta = {"tokens": {"input_tokens": tokens}} | ({"warnings": warnings} if warnings else {})
    return JSONResponse({"results": results, "model": servable.name, "meta": meta})


def best_first(name, scores, shown=None):
    """The number and score of each text, and what is shown of it, by falling score."""
    order = np.argsort(-scores, kind="stable").tolist()
    return [{"index": place, name: float(scores[place]), **(shown[place] if shown else {})} for place in order]


async def scores_of(models, asked, texts, entry, is_raw=False):
    """The scores of texts for a query, by default between 0 and 1; the Servable, the tokens that it has read, and what
    it has not read of the texts, as sentences."""
    (query,) = texts_in([asked.get("query")], "query")
    servable = servable_for(models, asked.get("model"), SCORE)
    inputs = {"text": [query] * len(texts), "text_pair": texts}
    found, tokens, warnings = await outputs_of(models, servable, SCORE, inputs, asked, entry)
    return found if is_raw else sigmoid(found.astype("float64")), servable, tokens, warnings


async def outputs_of(models, servable, kind, inputs, asked, entry):
    """The output of a kind for texts, the tokens that the model has read, and sentences about what it has not read.
    Raises ServingError."""
    output, signature = kind
    entry.answered_by(servable, signature, {})
    entry.model, entry.rows = servable.name, len(inputs["text"])
    checks, found, truncate = servable.text_checks, servable.signatures[signature], asked.get("truncate", True)
    if not isinstance(truncate, bool):
        raise invalid(f"truncate is {shortened(truncate)}, expected true or false.")
    columns = check_inputs(inputs, found, models.limits)
    if not truncate:
        cut, length = await asyncio.to_thread(checks.cut, found, columns)
        if cut:
            raise invalid(f"truncate is false, and {cut} of {entry.rows} texts have more than {length} tokens.")
    outputs = await models.ask(servable, inputs, signature)
    warnings = await asyncio.to_thread(checks.warnings, found, columns)
    return outputs[output], await asyncio.to_thread(checks.tokens_read, inputs), warnings


def servable_for(models, name, kind):
    """The Servable of that name; None is the only one that gives outputs of the kind. Raises ServingError."""
    output, signature = kind
    able = [each.name for each in models.models if output in getattr(each.signatures.get(signature), "outputs", ())]
    if name is None and len(able) == 1:
        (name,) = able
    if isinstance(name, str) and name not in able:
        models.find(name)  # which says if there is none
    if name not in able:
        known = ", ".join(able) or "none"
        raise invalid(f"'model' is {shortened(name)}: models that give the output {output} are {known}.")
    return models.find(name)


def error_of_clients(message):
    """The body of an error, as OpenAI's clients and Cohere's read it."""
    return {"error": {"message": message, "type": "invalid_request_error"}, "message": message}


def texts_in(texts, name):
    """A list of strings in a request. Raises ServingError."""
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise invalid(f"Expecting {name!r} to be text, not ids or nothing; got {shortened(texts)}.")
    return texts
