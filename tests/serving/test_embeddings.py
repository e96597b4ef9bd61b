"""Clients of OpenAI's embeddings, of text-embeddings-inference and of Cohere are answered as they expect."""

import base64
import json

import numpy as np
import pytest
from made_exports import make, with_large_weights
from made_servers import RunningServer
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.export import export_saved_model

pytestmark = on("tensorflow")
TEXTS = ["the cat sat on a mat", "a dog", "rain"]


@pytest.fixture(scope="module")
def models():
    embedder = make("TextEmbedder", pooling="mean", normalize=True)
    reranker = with_large_weights(kbi.Reranker(embedder.encoder, tokenizer=embedder.tokenizer, sequence_length=11))
    return {"vectors": embedder, "ranks": reranker}


@pytest.fixture(scope="module")
def server(models, tmp_path_factory):
    directory = tmp_path_factory.mktemp("served")
    for name, model in models.items():
        export_saved_model(model, directory / name)
    server = RunningServer({name: str(directory / name) for name in models}, max_rows=40)
    yield server
    server.stop()


def test_vectors_are_those_of_the_model_in_both_encodings_and_cut(server, models):
    expected = models["vectors"].embed(TEXTS)
    answer = server.json("/v1/embeddings", {"model": "vectors", "input": TEXTS})
    assert [one["index"] for one in answer["data"]] == [0, 1, 2] and answer["data"][0]["object"] == "embedding"
    np.testing.assert_allclose([one["embedding"] for one in answer["data"]], expected, atol=1e-5)
    tokens = sum(len(models["vectors"].tokenizer.encode(text).ids) for text in TEXTS)
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    assert (answer["object"], answer["model"]) == ("list", "vectors")
    asked = {"model": "vectors", "input": TEXTS[0], "encoding_format": "base64"}
    (one,) = server.json("/v1/embeddings", asked)["data"]
    found = np.frombuffer(base64.b64decode(one["embedding"]), "<f4")
    np.testing.assert_allclose(found, expected[0], atol=1e-5)
    (one,) = server.json("/v1/embeddings", {"model": "vectors", "input": TEXTS[0], "dimensions": 4})["data"]
    short = expected[0][:4] / np.linalg.norm(expected[0][:4])
    np.testing.assert_allclose(one["embedding"], short, atol=1e-5)


def test_texts_that_are_cut_are_counted_and_refused_if_the_client_wants_it(server):
    long = ["the cat sat on a mat in the rain and a dog ran " * 3, "a dog"]
    asked = {"model": "vectors", "input": long}
    (warning,) = server.json("/v1/embeddings", asked)["warnings"]
    assert warning.startswith("1 of 2 texts have more than 11 tokens")
    status, error = server.error("/v1/embeddings", {**asked, "truncate": False})
    assert status == 400 and "truncate is false, and 1 of 2 texts have more than 11" in error["message"]
    assert server.error("/v1/embeddings", {**asked, "truncate": "NONE"})[0] == 400
    assert "warnings" not in server.json("/v1/embeddings", {**asked, "input": long[1], "truncate": False})
    asked = {"model": "ranks", "query": "a dog", "documents": long}
    assert len(server.json("/v2/rerank", asked)["meta"]["warnings"]) == 1
    assert server.error("/rerank", {"query": "a dog", "texts": long, "truncate": False})[0] == 400
    assert len(server.json("/rerank", {"query": "a dog", "texts": long[1:], "truncate": False})) == 1


def test_texts_are_ranked_in_both_forms(server, models):
    logits = models["ranks"].predict((["where is it"] * 3, TEXTS), verbose=0)[:, 0]
    scores, order = 1 / (1 + np.exp(-logits)), np.argsort(-logits).tolist()
    found = server.json("/rerank", {"query": "where is it", "texts": TEXTS, "return_text": True})
    assert [(one["index"], one["text"]) for one in found] == [(place, TEXTS[place]) for place in order]
    np.testing.assert_allclose([one["score"] for one in found], scores[order], atol=1e-5)
    found = server.json("/rerank", {"query": "where is it", "texts": TEXTS, "raw_scores": True})
    np.testing.assert_allclose([one["score"] for one in found], logits[order], atol=1e-4)
    assert set(found[0]) == {"index", "score"}
    documents = [TEXTS[0], {"text": TEXTS[1]}, TEXTS[2]]
    asked = {"model": "ranks", "query": "where is it", "documents": documents, "top_n": 2, "return_documents": True}
    for path in ("/v1/rerank", "/v2/rerank"):
        found = server.json(path, asked)["results"]
        assert [one["index"] for one in found] == order[:2] and found[0]["document"] == {"text": TEXTS[order[0]]}
        np.testing.assert_allclose([one["relevance_score"] for one in found], scores[order[:2]], atol=1e-5)


def test_models_are_listed_and_their_status_stays(server):
    assert [one["id"] for one in server.json("/v1/models")["data"]] == ["vectors", "ranks"]
    assert "model_version_status" in server.json("/v1/models/vectors")


@pytest.mark.parametrize(
    ("path", "asked", "status", "message"),
    [
        ("/v1/embeddings", {"input": "a"}, 200, ""),
        ("/v1/embeddings", {"model": "other", "input": "a"}, 404, "other"),
        ("/v1/embeddings", {"model": "ranks", "input": "a"}, 400, "give the output vector are vectors"),
        ("/v1/embeddings", {"model": "vectors", "input": [[1, 2]]}, 400, "'input' to be text, not ids"),
        ("/v1/embeddings", {"model": "vectors", "input": []}, 400, "'input' to be text"),
        ("/v1/embeddings", {"model": "vectors", "input": "a", "dimensions": 99}, 400, "expected 1 to"),
        ("/v1/embeddings", {"model": "vectors", "input": "a", "encoding_format": "int8"}, 400, "'float' or 'base64'"),
        ("/v1/embeddings", {"model": "vectors", "input": ["a"] * 41}, 400, "41 examples"),
        ("/rerank", {"query": 3, "texts": TEXTS}, 400, "'query' to be text"),
        ("/rerank", {"model": ["ranks"], "query": "a", "texts": TEXTS}, 400, "'model' is"),
        ("/v1/rerank", {"query": "a", "documents": [{"title": "b"}]}, 400, "'documents' to be text"),
        ("/v1/rerank", {"query": "a", "documents": TEXTS, "top_n": 0}, 400, "top_n is 0"),
    ],
)
def test_what_cannot_be_answered_is_said(server, path, asked, status, message):
    found, body = server.ask(path, asked)
    assert found == status
    if status != 200:
        assert message in json.loads(body)["error"]["message"] == json.loads(body)["message"]


def test_the_description_names_what_the_server_answers_and_takes(server):
    description = server.json("/openapi.json")
    given = {"model": "vectors", "input": TEXTS, "query": "a dog", "texts": TEXTS, "documents": TEXTS}
    for path, methods in description["paths"].items():
        for method, told in methods.items():
            fields = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            names = fields.get("required", []) if "predict" not in path else ["instances"]
            content = {**given, "instances": TEXTS} if method == "post" else None
            content = content and {name: content[name] for name in names}
            status, body = server.ask(path.replace("{model}", "vectors"), content)
            assert status == 200, (path, body)
            assert set(names) <= set(fields.get("properties", {}))
