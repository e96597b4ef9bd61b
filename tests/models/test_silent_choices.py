"""What would train or answer in silence, with other data or parts than were meant, is refused."""

import numpy as np
import pytest
from tiers import on

import keras_bert_impl as kbi

TEXTS = ["the cat sat", "a dog ran"]


@pytest.fixture
def encoder(small_config):
    return kbi.BertEncoder(small_config)  # of two layers


def classifier(encoder, tokenizer, **options):
    return kbi.TextClassifier(encoder, 3, tokenizer=tokenizer, class_names=["a", "b", "c"], **options)


def table(columns):
    return pytest.importorskip("pandas").DataFrame(np.eye(2, len(columns)), columns=columns)


CASES = {
    "labels that are not learnt": (
        lambda encoder, tokenizer: kbi.MaskedLM(encoder, tokenizer=tokenizer).fit(TEXTS, [0, 1]),
        "leave y and sample_weight out",
    ),
    "weights of no label": (
        lambda encoder, tokenizer: kbi.MaskedLM(encoder, tokenizer=tokenizer).evaluate(TEXTS, sample_weight=[1, 2]),
        "leave y and sample_weight out",
    ),
    "embeddings as a layer": (lambda encoder, _: kbi.TextEmbedder(encoder, pooling="last_four"), "encoder has 2"),
    "embeddings as a feature": (lambda encoder, _: kbi.FeatureTagger(encoder, 2), "encoder has 2"),
    "a name letter by letter": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer, multi_label=True).fit(TEXTS, ["ac", "b"]),
        "labels contain a string",
    ),
    "a column of no class": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer, multi_label=True).fit(TEXTS, table([*"abcd"])),
        "columns of the labels are",
    ),
    "a class twice": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer).fit(TEXTS, ["a", "b"], class_weight={"a": 1, 0: 2}),
        "class_weight has a class twice",
    ),
    "all but the last": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer).classify(TEXTS, top_k=-1),
        "top_k is -1",
    ),
    "blocks that are not there": (lambda encoder, _: encoder.freeze_layers(3), "encoder has 2"),
    "validation without labels": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer).fit(TEXTS, [0, 1], validation_data=(TEXTS,)),
        "The texts have no labels",
    ),
    "validation of texts alone": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer).fit(TEXTS, [0, 1], validation_data=TEXTS),
        "The texts have no labels",
    ),
    "steps of a list that is judged": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer, long_texts="windows").evaluate(
            TEXTS, [0, 1], steps=1
        ),
        "steps=1 applies to datasets only",
    ),
    "steps of a list that fit validates with": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer).fit(
            TEXTS, [0, 1], validation_data=(TEXTS, [0, 1]), validation_steps=1
        ),
        "steps=1 applies to datasets only",
    ),
    "steps of a list that is predicted": (
        lambda encoder, tokenizer: classifier(encoder, tokenizer).predict(TEXTS, steps=1),
        "steps=1 applies to datasets only",
    ),
    **{
        f"validation of {kind}": (
            lambda encoder, tokenizer, data=data: classifier(encoder, tokenizer).fit(
                TEXTS, [0, 1], validation_data=data
            ),
            "validation_data",
        )
        for kind, data in {"a dict": {"text": TEXTS}, "a generator": iter([(TEXTS, [0, 1])]), "a number": 5}.items()
    },
    "a window of nothing": (lambda *_: kbi.ModernBertConfig.from_name("modernbert_tiny", local_attention=0), "from 1"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused(case, encoder, small_tokenizer):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call(encoder, small_tokenizer)


def test_a_teacher_of_several_classes_a_text_teaches_no_single_one(encoder, small_config):
    teacher = kbi.TextClassifier(kbi.BertEncoder(small_config), 3, multi_label=True)
    with pytest.raises(ValueError, match="of one class a text"):
        kbi.Distiller(kbi.TextClassifier(encoder, 3), teacher)


def test_a_figure_is_called_as_it_was_asked_for(encoder, small_tokenizer):
    """A callback that watches a figure of another name would never stop, or keep every epoch."""
    model = kbi.TextRegressor(encoder, tokenizer=small_tokenizer)
    model.compile("sgd", "mse", metrics=["mae", "mse"])
    assert {"mae", "mse", "val_mae"} <= model.fit(TEXTS, [0.5, 1.0], validation_data=(TEXTS, [0.5, 1.0])).history.keys()
    for names in (["accuracy", "f1_score"], ["AUC"], ["AUC", "bce"]):  # a second AUC of the process would be auc_1
        model = classifier(encoder, small_tokenizer, multi_label="AUC" in names)
        loss = "binary_crossentropy" if model.multi_label else "sparse_categorical_crossentropy"
        model.compile("sgd", loss, metrics=names)
        labels = np.eye(2, 3, dtype=int) if model.multi_label else [0, 1]
        assert {*names} <= model.fit(TEXTS, labels).history.keys()


def test_a_model_takes_no_arguments_that_it_would_pass_over(encoder, small_batch):
    rows = {name: small_batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    for model in (encoder, kbi.TextClassifier(encoder, 3)):
        with pytest.raises(TypeError, match="attention_mask"):
            model(rows, attention_mask=np.ones((2, 7)))


@on("tensorflow", "torch")
def test_a_dataset_has_its_own_labels_and_batches(encoder, small_tokenizer):
    tf = pytest.importorskip("tensorflow")
    model, data = classifier(encoder, small_tokenizer), tf.data.Dataset.from_tensor_slices((TEXTS, [0, 1])).batch(2)
    for call in (lambda: model.fit(data, batch_size=1), lambda: model.evaluate(data, [0, 1])):
        with pytest.raises(ValueError, match="A dataset yields batches of"):
            call()
    with pytest.raises(ValueError, match="texts have no labels"):
        model.fit(TEXTS, [0, 1], validation_data=data.map(lambda text, _: text))


@on("tensorflow", "torch")  # JAX asks to compile
def test_layers_that_are_frozen_after_a_step_are_not_trained(encoder, small_tokenizer):
    model = classifier(encoder, small_tokenizer)
    model.fit(TEXTS, [0, 1], verbose=0)
    model.freeze_layers(2)
    before = [np.array(weight) for weight in encoder.get_layer("block_1").weights]
    head = np.array(model.get_layer("classifier").kernel)
    model.fit(TEXTS, [0, 1], verbose=0)
    np.testing.assert_equal([np.array(weight) for weight in encoder.get_layer("block_1").weights], before)
    assert np.abs(np.array(model.get_layer("classifier").kernel) - head).max() > 0


@on("tensorflow", "torch", "jax")
def test_updates_of_low_rank_count_also_in_a_model_that_has_predicted(encoder, small_tokenizer):
    model = classifier(encoder, small_tokenizer)
    before = model.predict(TEXTS, verbose=0)
    model.enable_lora(2)
    draw = np.random.default_rng(0).normal
    for weight in model.weights:
        if weight.name.startswith("lora_"):
            weight.assign(draw(size=weight.shape))
    after = model.predict(TEXTS, verbose=0)
    model.merge_lora()
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0), after, atol=1e-5)
