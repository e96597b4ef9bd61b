"""Students that imitate a teacher: their losses are those of the published code, computed by transformers' models."""

import dataclasses

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from every_model import LABELS, WITHOUT_DROPOUT, as_arrays
from reference_models import open_in_transformers, outputs_of, random_model
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.callbacks.saved_states import variables_of
from keras_bert_impl.models.student import student_config
from keras_bert_impl.optimization import BertAdamW


@pytest.fixture
def teacher_config(small_config):
    return dataclasses.replace(small_config, **WITHOUT_DROPOUT, initializer_range=0.3)


# What a MaskedLM, a TextClassifier and an encoder learn.
KINDS = {
    "words": (kbi.MaskedLM, {"hidden_state_weight": 1.0}),
    "classes": (lambda encoder: kbi.TextClassifier(encoder, 3, dropout_rate=0.0), {}),
    "states": (lambda encoder: encoder, {"soft_target_weight": 0, "hidden_state_weight": 1.0}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
quick_kind = pytest.mark.parametrize("kind", full_but(KINDS, "words"))


def build(kind, teacher_config, learning_rate=1e-2, dropout_rate=0.0, family="distilbert", sizes=None, **arguments):
    keras.utils.set_random_seed(3)
    model_of, options = KINDS[kind]
    teacher = model_of(kbi.BertEncoder(teacher_config))
    rates = {"hidden_dropout_rate": dropout_rate, "attention_dropout_rate": dropout_rate}
    config = student_config(teacher_config, family, num_layers=1, **rates, **(sizes or {}))
    encoder = {"distilbert": kbi.DistilBertEncoder, "bert": kbi.BertEncoder}[family](config)
    model = kbi.Distiller(model_of(encoder), teacher, **{**options, **arguments})
    model.compile(optimizer=BertAdamW(learning_rate), **QUICK_STEPS)
    return model


@pytest.fixture
def pair(teacher_config, tmp_path):
    """A teacher and a student of transformers with random weights, and the directories that hold them."""
    teacher = random_model("BertForMaskedLM", teacher_config, tmp_path / "teacher")
    student = random_model("DistilBertForMaskedLM", student_config(teacher_config, num_layers=1), tmp_path / "student")
    return teacher, student, tmp_path


def test_the_losses_are_those_of_the_published_code(pair, small_batch):
    """Those of `Distiller.step` in transformers' research project, computed with transformers' models."""
    torch = pytest.importorskip("torch")
    theirs, ours, directory = pair
    mask = torch.as_tensor(small_batch["padding_mask"], dtype=torch.long)
    inputs = {"input_ids": torch.as_tensor(small_batch["token_ids"], dtype=torch.long), "attention_mask": mask}
    with torch.no_grad():
        student = ours(**inputs, output_hidden_states=True)
        segments = torch.as_tensor(small_batch["segment_ids"], dtype=torch.long)
        teacher = theirs(**inputs, token_type_ids=segments, output_hidden_states=True)
    labels = torch.full(mask.shape, -100)
    for row, column in zip(*np.nonzero(LABELS["mask_weights"]), strict=True):
        labels[row, small_batch["mask_positions"][row, column]] = int(LABELS["mask_ids"][row, column])

    def soft(chosen, temperature):
        s, t = student.logits[chosen] / temperature, teacher.logits[chosen] / temperature
        divergence = torch.nn.KLDivLoss(reduction="batchmean")
        return float(divergence(torch.log_softmax(s, -1), torch.softmax(t, -1)) * temperature**2)

    masked_lm = float(torch.nn.CrossEntropyLoss(ignore_index=-100)(student.logits.flatten(0, 1), labels.flatten()))
    vectors = [outputs.hidden_states[-1][mask.bool()] for outputs in (student, teacher)]
    cosine = float(torch.nn.CosineEmbeddingLoss()(*vectors, torch.ones(len(vectors[0]))))

    def found(**options):
        models = [kbi.MaskedLM.from_pretrained(directory / name) for name in ("student", "teacher")]
        model = kbi.Distiller(*models, **options)
        model.compile(**QUICK_STEPS)
        return model.test_on_batch(small_batch, LABELS, return_dict=True)

    usual, other = found(), found(temperature=3.0, soft_targets="masked", masked_lm_weight=0.5, cosine_weight=0.0)
    expected = {"soft_target_loss": soft(mask.bool(), 2.0), "masked_lm_loss": masked_lm, "cosine_loss": cosine}
    for name, value in expected.items():
        np.testing.assert_allclose(usual[name], value, rtol=1e-5, err_msg=name)
    total = 5 * expected["soft_target_loss"] + 2 * masked_lm + cosine
    np.testing.assert_allclose(usual["loss"], total, rtol=1e-5)
    np.testing.assert_allclose(other["loss"], 5 * soft(labels >= 0, 3.0) + 0.5 * masked_lm, rtol=1e-5)
    assert "cosine_loss" not in {name for name, value in other.items() if value}


@pytest.mark.filterwarnings("ignore:.* has no values for pooler")
@pytest.mark.parametrize("width", [15, 9])
def test_hidden_states_are_compared_as_in_tinybert(width, teacher_config, small_batch, tmp_path):
    """The embeddings and both layers of the student, with the embeddings and layers 2 and 3 of three; equation 8's
    projection only where the widths differ."""
    teacher_config = dataclasses.replace(teacher_config, num_layers=3)
    config = student_config(teacher_config, num_layers=2, hidden_size=width)
    theirs = random_model("BertModel", teacher_config, tmp_path / "teacher", output_hidden_states=True)
    ours = random_model("DistilBertModel", config, tmp_path / "student", output_hidden_states=True)
    encoders = [kbi.encoder_from_pretrained(tmp_path / name) for name in ("student", "teacher")]
    model = kbi.Distiller(*encoders, soft_target_weight=0, cosine_weight=0, hidden_state_weight=2)
    model.compile(**QUICK_STEPS)
    found = model.test_on_batch(small_batch, return_dict=True)
    teacher, student = (outputs_of(one, small_batch)["hidden_states"] for one in (theirs, ours))
    if width != 15:
        kernel, bias = as_arrays(model.get_layer("projection").weights)
        student = [states @ kernel + bias for states in student]
    tokens = small_batch["padding_mask"] == 1
    expected = sum(((student[m] - teacher[n]) ** 2)[tokens].mean() for m, n in ((0, 0), (1, 2), (2, 3)))
    np.testing.assert_allclose(found["hidden_state_loss"], expected, rtol=1e-5)
    np.testing.assert_allclose(found["loss"], 2 * expected, rtol=1e-5)


def test_soft_labels_of_classes_are_those_of_hinton(teacher_config, small_batch):
    model = build("classes", teacher_config, cosine_weight=0, temperature=3.0, soft_target_weight=0.5)
    rows = {name: array for name, array in small_batch.items() if name != "mask_positions"}
    student, teacher = (np.asarray(one.predict_on_batch(rows), "float64") / 3 for one in (model.student, model.teacher))
    q, p = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) for logits in (student, teacher))
    divergences = (p * np.log(p / q)).sum(axis=1)
    found = model.test_on_batch(rows, return_dict=True)
    np.testing.assert_allclose(found["soft_target_loss"], 9 * divergences.mean(), rtol=1e-4)
    np.testing.assert_allclose(found["loss"], 4.5 * divergences.mean(), rtol=1e-4)
    weighted = model.test_on_batch(rows, sample_weight=np.array([1.0, 3.0]), return_dict=True)
    np.testing.assert_allclose(weighted["soft_target_loss"], 9 * divergences @ [0.25, 0.75], rtol=1e-4)


@every_kind
def test_training_changes_every_weight_of_the_student_and_none_of_the_teacher(kind, teacher_config, small_batch):
    model = build(kind, teacher_config)
    model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
    student, teacher = (model.get_layer(name).weights for name in ("student", "teacher"))
    before = [as_arrays(weights) for weights in (student, teacher)]
    model.train_on_batch(small_batch, LABELS)
    for weight, old in zip(teacher, before[1], strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), old, err_msg=weight.path)
    for weight, old in zip(student, before[0], strict=True):
        assert (as_arrays([weight])[0] != old).any(), weight.path


def test_a_step_has_no_gradients_of_the_step_before(teacher_config, small_batch):
    """A step that changes nothing, at a rate of 0, leaves nothing behind for the next."""
    updated = []
    for rates in ((1.0,), (0.0, 1.0)):
        model = build("words", teacher_config)
        model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
        for rate in rates:
            model.optimizer.learning_rate = rate
            model.train_on_batch(small_batch, LABELS)
        updated.append(as_arrays(model.trainable_weights))
    for one, other in zip(*updated, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@quick_kind
def test_the_teacher_has_no_dropout_and_its_outputs_are_those_of_the_teacher_alone(kind, teacher_config, small_batch):
    config = dataclasses.replace(teacher_config, hidden_dropout_rate=0.5, attention_dropout_rate=0.5)
    model = build(kind, config, dropout_rate=0.5)
    first, second = (model(small_batch, training=True) for _ in range(2))
    for name in first:
        is_same = np.array_equal(*as_arrays([first[name], second[name]]))
        assert is_same == name.startswith("teacher_"), name
    rows = {name: small_batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    alone = getattr(model.teacher, "encoder", model.teacher).predict_on_batch(rows)["sequence_output"]
    np.testing.assert_allclose(as_arrays([first["teacher_hidden_state_1"]])[0], alone, atol=1e-5)


def test_what_a_training_saves_of_its_variables_are_the_students(teacher_config):
    model = build("words", teacher_config, dropout_rate=0.1)
    saved = {id(variable) for variable in variables_of(model)["model"]}
    assert not saved & {id(variable) for variable in model.teacher.variables}
    assert {id(weight) for weight in model.trainable_weights} <= saved
    assert [weight.path for weight in model.trainable_weights if "block_1" in weight.path] == []


@quick_kind
def test_a_student_comes_to_imitate_its_teacher(kind, teacher_config, small_batch):
    model = build(kind, teacher_config, learning_rate=3e-2)
    first = model.test_on_batch(small_batch, LABELS, return_dict=True)
    for _ in range(15):
        model.train_on_batch(small_batch, LABELS)
    last = model.test_on_batch(small_batch, LABELS, return_dict=True)
    for name in set(first) - {"masked_lm_accuracy", "masked_lm_loss"}:  # the teacher does not know the words
        assert last[name] < 0.8 * first[name], name


@quick_kind
def test_padding_and_excess_arrays_do_not_change_the_losses(kind, teacher_config, small_batch):
    model = build(kind, teacher_config)
    longer = {
        **{name: np.pad(array, ((0, 0), (0, 2))) for name, array in small_batch.items() if name != "mask_positions"},
        "mask_positions": np.pad(small_batch["mask_positions"], ((0, 0), (0, 1))),
        "cls_positions": np.zeros((2, 1), "int32"),
    }
    labels = {name: np.pad(array, ((0, 0), (0, 1))) if array.ndim == 2 else array for name, array in LABELS.items()}
    found = [model.test_on_batch(*batch, return_dict=True) for batch in ((small_batch, LABELS), (longer, labels))]
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("family", ["distilbert", "bert"])
def test_the_student_opens_in_transformers(family, teacher_config, tmp_path):
    prefix = {"distilbert": "DistilBert", "bert": "Bert"}[family]
    build("words", teacher_config, family=family).save_pretrained(tmp_path / "head")
    open_in_transformers(f"{prefix}ForMaskedLM", tmp_path / "head")
    build("states", teacher_config, family=family).save_pretrained(tmp_path / "none")
    open_in_transformers(f"{prefix}Model", tmp_path / "none")


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("words", {"sizes": {"vocabulary_size": 50}}, "the student's vocabulary has 50 words, the teacher's 53"),
        ("states", {"soft_target_weight": 1}, "soft targets are of two MaskedLM, or two TextClassifier"),
    ],
)
def test_models_that_do_not_fit_are_refused(kind, arguments, message, teacher_config):
    with pytest.raises(ValueError, match=message):
        build(kind, teacher_config, **arguments)


def test_classes_in_another_order_are_refused(teacher_config):
    student, teacher = (
        kbi.TextClassifier(kbi.BertEncoder(teacher_config), 2, class_names=names) for names in (["a", "b"], ["b", "a"])
    )
    with pytest.raises(ValueError, match=r"classes are \['a', 'b'\], the teacher's \['b', 'a'\]: give the student"):
        kbi.Distiller(student, teacher)


def test_a_keras_file_of_student_and_teacher_is_refused(teacher_config, tmp_path):
    with pytest.raises(ValueError, match="cannot hold a Distiller with its teacher"):
        build("states", teacher_config).save(tmp_path / "model.keras")


def test_the_arithmetic_of_a_step_is_the_students_and_a_forward_pass_of_the_teacher(teacher_config):
    model = build("words", teacher_config, soft_targets="masked")

    def forward(layers, rows=2, length=5, predictions=3, width=15, inner=21):
        block = 2 * length * (4 * width**2 + 2 * width * inner) + 4 * length**2 * width
        return rows * (layers * block + 2 * predictions * (width + 53) * width + 2 * width**2)

    assert model.training_flops(2, 5, 3) == 3 * forward(1) + forward(2)
