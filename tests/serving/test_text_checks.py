"""What a reply says of texts that were truncated, are empty, or have no mask; the sentences are those of the models."""

import asyncio
import types

import numpy as np
import pytest
from made_exports import make
from made_servers import running, write_model
from tiers import on, once

import keras_bert_impl as kbi
from keras_bert_impl.export import export_saved_model
from keras_bert_impl.json_files import write_json
from keras_bert_impl.text.tokenizers.tokenizer_json import write_portable_file
from keras_bert_serving.errors import ServingError
from keras_bert_serving.limits import Limits
from keras_bert_serving.models import Models
from keras_bert_serving.request_queue import RequestQueue
from keras_bert_serving.signatures import Array, Signature
from keras_bert_serving.text_checks import TextChecks

ROOM = 9  # tokens of a text, of 11 with [CLS] and [SEP]
FITTING, LONG = "the " * ROOM, "the " * (ROOM + 1)
EMPTY = "1 of 2 texts are empty: what the model answers to these means nothing."


@pytest.fixture
def checks(small_tokenizer, tmp_path):
    write_portable_file(small_tokenizer, tmp_path / "tokenizer.json", 11)
    return TextChecks(tmp_path, {"export": {"sequence_length": 11}})


@pytest.fixture
def told(checks, tmp_path):
    """Function from the texts of a request, its signature and the description of an export to what is said."""

    def told(inputs, signature="serving_default", **export):
        inputs = {name: np.array(texts, "S").astype(object) for name, texts in inputs.items()}
        arrays = {name: Array(np.dtype(object), (None,)) for name in inputs}
        return TextChecks(tmp_path, {"export": {"sequence_length": 11, **export}}).warnings(
            Signature(signature, arrays, {}, ""), inputs
        )

    return told


@once
def test_a_text_or_pair_is_cut_from_the_first_token_on_that_has_no_room(told):
    assert told({"text": [FITTING, "a cat"]}, model="TextClassifier") == []
    (sentence,) = told({"text": [LONG, FITTING, LONG]}, model="TextClassifier")
    assert sentence.startswith("2 of 3 texts have more than 11 tokens and were truncated to that length")
    assert told({"text": ["." * ROOM]}) == [] and len(told({"text": ["." * (ROOM + 1)]})) == 1  # a byte for each token
    (sentence,) = told({"text": ["the " * 4] * 2, "text_pair": ["cat " * 4, "cat " * 5]}, model="TextClassifier")
    assert sentence.startswith("1 of 2 texts have more")
    (sentence,) = told({"text": ["the cat"], "endings": [["sat", FITTING, LONG]]}, model="MultipleChoice")
    assert sentence.startswith("2 of 3 texts have more")


@once
@pytest.mark.parametrize("export", [{"model": "TextClassifier", "long_texts": "windows"}, {"model": "TokenClassifier"}])
def test_texts_that_are_read_in_windows_are_not_cut(told, export):
    assert told({"text": [LONG]}, **export) == []
    assert "were truncated" in told({"text": [LONG]}, "attention", **export)[0]
    assert "were truncated" in told({"text": [LONG], "text_pair": ["a"]}, "pairs", **export)[0]


@once
def test_an_empty_text_is_told(told):
    assert told({"text": [" ", "the cat"]}, model="TextClassifier") == [EMPTY]
    assert told({"text": ["a", "a"], "text_pair": ["", "b"]}, model="TextClassifier") == [EMPTY]


@once
def test_a_question_that_is_cut_is_told_and_a_context_never_is(told):
    assert told({"question": ["the cat"], "context": [LONG]}, model="QuestionAnswerer") == []
    asked = {"question": ["the cat sat", "the"], "context": ["the cat", " "]}  # a quarter of 11 tokens: 2
    assert told(asked, model="QuestionAnswerer") == [
        EMPTY,
        "1 of 2 questions have more than 2 tokens and were truncated to that length.",
    ]


@once
def test_an_answer_is_too_large_by_its_tokens_not_its_words(checks):
    """8 rows of 510 CJK characters without a space have an attention of a gigabyte."""
    attention = Array(np.dtype("float32"), (None, 12, 12, None, None))
    signature = Signature("attention", {"text": Array(np.dtype(object), (None,))}, {"attention": attention}, "")
    servable = types.SimpleNamespace(name="toy", signatures={"attention": signature}, text_checks=checks)
    servable.run = lambda *asked: {"attention": np.zeros(1)}
    largest = 2 * 144 * 9 * 9 * 4  # bytes of two rows of 7 tokens, [CLS] and [SEP]
    for text, fits in (("中" * 7, True), ("中" * 8, False), ("the " * 7, True), ("the " * 99, False)):
        models = Models({}, None, Limits(max_answer_bytes=largest), RequestQueue())
        asked = models.ask(servable, {"text": [text, "cat"]}, "attention")
        if fits:
            assert asyncio.run(asked)
        else:
            with pytest.raises(ServingError, match="The answer has"):
                asyncio.run(asked)


@once
def test_columns_of_unequal_lengths_and_other_models_are_left_alone(told, checks, tmp_path):
    assert told({"text": ["", ""], "text_pair": ["a"]}) == []
    assert checks.longest_read({"text": np.array([b"a", b"b"]), "text_pair": np.array([b"a"])}, True) == 0
    signature = Signature("serving_default", {"text": Array(np.dtype(object), (None,))}, {}, "")
    assert TextChecks(tmp_path, {}).warnings(signature, {"text": np.array([b""], object)}) == []


@once
def test_a_text_in_which_no_word_is_guessed_has_no_mask_unless_it_was_cut(checks):
    outputs = dict.fromkeys(("token_ids", "probabilities"), np.zeros(1))
    for row, texts in enumerate(([b"the cat", LONG.encode()], [b"a", b"the cat"])):
        outputs["tokens"] = np.array([[[b"cat", b""]], [[b"", b""]]], object)
        if b"the cat" != texts[1]:
            outputs["tokens"][0] = b"", b""
        with pytest.raises(ServingError, match=rf"Row {row}: There is no \[MASK\] in the text 'the cat': write"):
            checks.refuse_without_mask({"text": np.array(texts, object)}, outputs)
    outputs["tokens"][0] = b"cat", b""
    checks.refuse_without_mask({"text": np.array([b"[MASK]", LONG.encode()], object)}, outputs)
    no_masks = {**outputs, "tokens": np.empty((1, 0, 2), object)}
    with pytest.raises(ServingError, match="There is no"):
        checks.refuse_without_mask({"text": np.array([b"the cat"], object)}, no_masks)


@on("tensorflow")
def test_a_reply_has_warnings_only_where_there_are_some(tmp_path, small_tokenizer):
    write_model(tmp_path, 1)
    write_portable_file(small_tokenizer, tmp_path / "1" / "tokenizer.json", 11)
    write_json(tmp_path / "1" / "config.json", {"export": {"sequence_length": 11}})
    with running(tmp_path) as server:
        for body, key in (({"instances": [LONG]}, "predictions"), ({"inputs": [LONG]}, "outputs")):
            answer = server.json("/v1/models/toy:predict", body)
            assert set(answer) == {key, "warnings"} and answer["warnings"][0].startswith("1 of 1 texts have more than")
        assert set(server.json("/v1/models/toy:predict", {"instances": [FITTING]})) == {"predictions"}


@pytest.mark.full
@on("tensorflow")
def test_a_reply_and_the_page_tell_of_cut_texts_as_predict_does(tmp_path):
    model = make("TextClassifier")
    export_saved_model(model, tmp_path / "1")
    with running(tmp_path, "classes") as served:
        answer = served.json("/v1/models/classes:predict", {"instances": [LONG, FITTING]})
        for text, read in ((LONG, 11), (FITTING, None)):
            asked = {"model": "classes", "task": "classify", "fields": {"text": text}}
            assert served.json("/page/ask", asked)["cut_to"] == read
    with pytest.warns(kbi.tokenizers.rows.TextsCutWarning) as told:
        model.predict([LONG, FITTING], verbose=0)
    (sentence,) = [str(one.message) for one in told if "were truncated" in str(one.message)]
    assert answer["warnings"] == [sentence] and len(answer["predictions"]) == 2
