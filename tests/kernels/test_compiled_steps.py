"""torch's compiler in the steps of a model: the same values, one graph, few programs, and a way back."""

import dataclasses
import functools
import itertools
import logging
import warnings

import keras
import numpy as np
import pytest
from families import CONFIGS, FAMILIES, encoder_of, rows_for
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.encoders.trainable import enable_lora
from keras_bert_impl.kernels import compiled_steps
from keras_bert_impl.optimization import BertAdamW

torch = pytest.importorskip("torch")
pytestmark = [on("torch"), pytest.mark.filterwarnings("error:Steps run without torch's compiler")]

HEADS = {
    "text_classifier": lambda encoder, **own: kbi.TextClassifier(encoder, 3, **own),
    "token_classifier": lambda encoder, **own: kbi.TokenClassifier(encoder, 4, **own),
    "question_answerer": lambda encoder, **own: kbi.QuestionAnswerer(encoder),
    "text_regressor": kbi.TextRegressor,
    "multiple_choice": kbi.MultipleChoice,
    "masked_lm": lambda encoder, **own: kbi.MaskedLM(encoder),
    "pretrainer": lambda encoder, **own: kbi.Pretrainer(encoder, next_sentence=False),
}
WITHOUT_DROPOUT = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0}
# Heads and families do not depend on each other.
CASES = [
    (name, kind) for name in FAMILIES for kind in HEADS if name == "Bert" or kind in ("question_answerer", "pretrainer")
]
FIRST = [("Bert", "text_classifier")]


@pytest.fixture
def traced(monkeypatch):
    """torch's compiler without its last step, which makes machine code and takes the most time."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch):
    monkeypatch.setattr(compiled_steps, "PLAIN_PREDICTIONS", 0)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    for name in ("torch.__trace", "torch._dynamo", "torch._inductor"):  # megabytes that pytest would keep
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)


def data_of(kind, config, rows=4, length=7):
    """Inputs and labels of random rows, padded but for the first."""
    random, widths = np.random.default_rng(rows * length), np.maximum(length - np.arange(rows), 3)
    batch = {
        "token_ids": random.integers(6, 53, (rows, length)).astype("int32"),
        "segment_ids": np.zeros((rows, length), "int32"),
        "padding_mask": (np.arange(length) < widths[:, None]).astype("int32"),
    }
    inputs = rows_for(config, batch)
    if kind == "multiple_choice":
        inputs = {name: np.stack([array, array[::-1]], axis=1) for name, array in inputs.items()}
    if kind in ("masked_lm", "pretrainer"):
        first = (length - widths)[:, None] * encoder_of(config).cls_is_last
        inputs["mask_positions"] = np.tile(np.array([[1, 2]], "int32"), (rows, 1)) + first.astype("int32")
    words = random.integers(5, 53, (rows, 2)).astype("int32")
    return inputs, {
        "text_classifier": random.integers(0, 3, rows),
        "token_classifier": np.where(inputs["padding_mask"] == 1, random.integers(0, 4, batch["token_ids"].shape), -1)
        if kind == "token_classifier"
        else None,
        "question_answerer": np.tile([[1, 2]], (rows, 1)),
        "text_regressor": random.normal(size=(rows, 1)).astype("float32"),
        "multiple_choice": random.integers(0, 2, rows),
        "masked_lm": words,
        "pretrainer": {"mask_ids": words, "mask_weights": np.ones((rows, 2), "float32")},
    }[kind]


def model_of(name, kind, dtype="float32", num_layers=2, **own):
    config = dataclasses.replace(CONFIGS[name], **WITHOUT_DROPOUT, num_layers=num_layers)
    keras.utils.set_random_seed(1)
    dropout = {} if kind in ("question_answerer", "masked_lm", "pretrainer") else {"dropout_rate": 0.0}
    return HEADS[kind](encoder_of(config)(config, dtype=dtype, **own), **dropout)


def figures(model, kind, is_compiled, steps, **optimizer):
    """What ten steps, an evaluation and a prediction return, and the weights after them, in one row."""
    loss = {} if kind == "pretrainer" else {"loss": model.loss}
    model.compile(optimizer=BertAdamW(1e-3, **optimizer), jit_compile=is_compiled, **loss)
    data = data_of(kind, getattr(model, "encoder", model).config)
    found = [model.train_on_batch(*data) for _ in range(steps)]
    found += [model.test_on_batch(*data), model.predict_on_batch(data[0]), model.get_weights()]
    assert model.jit_compile is is_compiled
    return np.concatenate([np.ravel(array) for array in keras.tree.flatten(found)])


@pytest.mark.parametrize(("name", "kind"), full_but(CASES, *FIRST))
def test_steps_of_every_family_and_head_are_one_graph_with_the_values_of_plain_steps(name, kind, traced):
    steps, num_layers = (10, 1) if (name, kind) in FIRST else (3, 2)
    plain, compiled = (
        # A bias that is added to all scores of a softmax has no gradient, of whose rounding Adam would make a step.
        figures(model_of(name, kind, num_layers=num_layers), kind, is_compiled, steps, epsilon=1e-2)
        for is_compiled in (False, True)
    )
    np.testing.assert_allclose(compiled, plain, atol=1e-6 if steps == 10 else 2e-6)


def with_lora(model):
    enable_lora(model, 2)
    return model


def frozen(model):
    model.freeze_layers(0)
    model.get_layer("token_embedding").trainable = False
    return model


@pytest.mark.full
@pytest.mark.parametrize(
    ("change", "encoder", "optimizer"),
    [
        (with_lora, {}, {}),
        (frozen, {}, {}),
        (None, {}, {"gradient_accumulation_steps": 2}),
        (None, {}, {"use_ema": True}),
        (None, {}, {"moments": "bfloat16", "layer_decay": 0.8}),
        (None, {"rematerialize": True}, {}),
        (None, {"dtype": "mixed_bfloat16"}, {}),
    ],
    ids=["lora", "frozen", "accumulated", "ema", "bfloat16 moments", "checkpointed", "bfloat16"],
)
def test_ways_to_train_are_compiled_with_the_values_of_plain_steps(change, encoder, optimizer, traced):
    change = change or (lambda model: model)
    plain, compiled = (
        figures(
            change(model_of("Bert", "text_classifier", num_layers=1, **encoder)),
            "text_classifier",
            is_compiled,
            3,
            **optimizer,
        )
        for is_compiled in (False, True)
    )
    # Operations that are joined round less often in bfloat16.
    np.testing.assert_allclose(compiled, plain, atol=2e-2 if encoder.get("dtype") else 1e-6)


@pytest.mark.full
def test_weights_that_are_frozen_after_compile_stay_and_others_go_on(traced):
    model = model_of("Bert", "text_classifier", num_layers=1)
    model.compile(optimizer=BertAdamW(1e-3), loss=model.loss, jit_compile=True)
    data = data_of("text_classifier", model.encoder.config)
    for is_frozen in (False, True, False):
        model.get_layer("block_0").trainable = not is_frozen
        before = [np.array(weight) for weight in model.get_layer("block_0").weights]
        model.train_on_batch(*data)
        after = [np.array(weight) for weight in model.get_layer("block_0").weights]
        assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True)) is is_frozen


@pytest.mark.full
def test_a_prediction_after_lora_and_after_int8_is_that_of_the_weights_there_are(traced):
    model = model_of("Bert", "text_classifier", num_layers=1)
    model.compile(optimizer=BertAdamW(1e-3), loss=model.loss, jit_compile=True)
    data = data_of("text_classifier", model.encoder.config)
    found = [model.predict_on_batch(data[0])]
    for change in (model.get_layer("block_0").output_dense.enable_lora, model.merge_lora, model.quantize):
        change(*{"enable_lora": [2], "quantize": ["int8"]}.get(change.__name__, []))
        if change.__name__ != "quantize":
            model.optimizer = BertAdamW(1e-2)
            model.train_on_batch(*data)
        with warnings.catch_warnings():
            if change.__name__ == "quantize":  # Keras' int8 cannot be compiled
                warnings.simplefilter("ignore")
            found.append(model.predict_on_batch(data[0]))
        np.testing.assert_allclose(found[-1], model(data[0]).detach().numpy(), atol=1e-6)
    assert not any(np.allclose(*pair, atol=1e-5) for pair in itertools.pairwise(found))


def test_batches_of_all_sizes_take_two_programs_for_a_kind_of_step(traced):
    made, compile_ = [], torch.compile

    def counting(function, **options):
        def compiler(graph, inputs):
            made.append(options["dynamic"] is None)
            return graph

        return compile_(function, **{**options, "backend": compiler})

    model = model_of("Bert", "text_classifier", num_layers=1)
    model.compile(optimizer=BertAdamW(1e-3), loss=model.loss, jit_compile=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "compile", counting)
        for rows, length in ((4, 7), (4, 9), (3, 9), (4, 7), (2, 11), (1, 8), (5, 10)):
            model.train_on_batch(*data_of("text_classifier", model.encoder.config, rows, length))
    assert made == [False, True]


@pytest.mark.full
def test_machine_code_has_the_values_and_dropout_that_differs_by_step_and_repeats_by_seed():
    plain, compiled = (
        figures(model_of("Bert", "text_classifier"), "text_classifier", is_compiled, 10)
        for is_compiled in (False, True)
    )
    np.testing.assert_allclose(compiled, plain, atol=1e-6)
    model = kbi.TextClassifier(kbi.BertEncoder(CONFIGS["Bert"]), 3, dropout_rate=0.5)
    model.compile(optimizer=keras.optimizers.SGD(0.0), loss=model.loss, jit_compile=True)
    data = data_of("text_classifier", model.encoder.config)

    def losses():
        keras.utils.set_random_seed(5)
        return [float(np.ravel(model.train_on_batch(*data))[0]) for _ in range(4)]

    first = losses()
    assert len(set(first)) == 4 and losses() == first


def test_what_the_compiler_cannot_take_is_computed_without_it_and_a_line_says_why(traced):
    def loss(wanted, logits):
        assert float(logits.detach().sum()) < 1e9  # a number of Python is no part of a graph
        return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(wanted, logits, from_logits=True))

    found = []
    for is_compiled in (False, True):
        model = model_of("Bert", "text_classifier", num_layers=1)
        model.compile(optimizer=BertAdamW(1e-3), loss=loss, jit_compile=is_compiled)
        data = data_of("text_classifier", model.encoder.config)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found.append([model.train_on_batch(*data) for _ in range(3)])
        said = [str(one.message) for one in said if "without torch's compiler" in str(one.message)]
        assert len(said) == is_compiled
    np.testing.assert_array_equal(*found)
    assert "test_compiled_steps.py" in said[0]


def test_the_first_predictions_wait_for_no_compiler(traced, monkeypatch):
    monkeypatch.setattr(compiled_steps, "PLAIN_PREDICTIONS", 2)
    model = model_of("Bert", "text_classifier", num_layers=1)
    model.compile(loss=model.loss, jit_compile=True)
    inputs, _ = data_of("text_classifier", model.encoder.config)
    found = []
    for programs in (0, 0, 1, 1):
        found.append(model.predict_on_batch(inputs))
        assert len(model.compiled_steps) == programs
    np.testing.assert_allclose(found[1:], found[:-1], atol=1e-6)


def test_a_gpu_compiles_unless_it_is_told_otherwise(monkeypatch):
    model = model_of("Bert", "text_classifier")
    for has_gpu in (False, True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda has_gpu=has_gpu: has_gpu)
        for asked, expected in (("auto", has_gpu), (True, True), (False, False)):
            model.compile(loss=model.loss, jit_compile=asked)
            assert model.jit_compile is expected
