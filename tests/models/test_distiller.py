"""Students that imitate a teacher: their losses are those of the published code, computed by transformers' models."""

import dataclasses

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from reference_models import open_in_transformers, random_model

import keras_bert_impl as kbi
from keras_bert_impl.models.student import student_config
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.resume.saved_states import variables_of

LABELS = {
    "mask_ids": np.array([[17, 5, 10], [9, 13, 0]], "int32"),
    "mask_weights": np.array([[1, 1, 1], [1, 1, 0]], "float32"),
    "next_sentence_labels": np.array([0, 1], "int32"),
}


@pytest.fixture
def teacher_config(small_config):
    return dataclasses.replace(small_config, hidden_dropout_rate=0.0, attention_dropout_rate=0.0, initializer_range=0.3)


def build(kind, teacher_config, learning_rate=1e-2, dropout_rate=0.0, family="distilbert", sizes=None, **arguments):
    keras.utils.set_random_seed(3)
    model_of = kbi.MaskedLM if kind is kbi.MaskedLMDistiller else lambda encoder: encoder
    teacher = model_of(kbi.BertEncoder(teacher_config))
    rates = {"hidden_dropout_rate": dropout_rate, "attention_dropout_rate": dropout_rate}
    config = student_config(teacher_config, family, num_layers=1, **rates, **(sizes or {}))
    encoder = {"distilbert": kbi.DistilBertEncoder, "bert": kbi.BertEncoder}[family](config)
    model = kind(model_of(encoder), teacher, **arguments)
    model.compile(optimizer=BertAdamW(learning_rate), **QUICK_STEPS)
    return model


def as_arrays(weights):
    return [keras.ops.convert_to_numpy(weight).copy() for weight in weights]


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
        model = kbi.MaskedLMDistiller(*models, **options)
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
def test_the_relations_are_those_of_transformers_last_layers(pair, small_batch):
    torch = pytest.importorskip("torch")
    theirs, ours, directory = pair
    mask = torch.as_tensor(small_batch["padding_mask"], dtype=torch.long)
    inputs = {"input_ids": torch.as_tensor(small_batch["token_ids"], dtype=torch.long), "attention_mask": mask}
    segments = torch.as_tensor(small_batch["segment_ids"], dtype=torch.long)
    with torch.no_grad():
        student = ours(**inputs, output_hidden_states=True, output_attentions=True)
        teacher = theirs(**inputs, token_type_ids=segments, output_hidden_states=True, output_attentions=True)
        values = [
            ours.distilbert.transformer.layer[-1].attention.v_lin(student.hidden_states[-2]),
            theirs.bert.encoder.layer[-1].attention.self.value(teacher.hidden_states[-2]),
        ]

    def relation(values):
        heads = values.unflatten(-1, (3, 5)).transpose(1, 2)  # (batch, heads, length, 5)
        products = heads @ heads.transpose(2, 3) / 5**0.5
        return torch.softmax(products.masked_fill(mask[:, None, None] == 0, -torch.inf), -1)

    def divergence(student, teacher):
        terms = torch.where(teacher > 0, teacher * (teacher.clamp(min=1e-30) / student.clamp(min=1e-30)).log(), 0.0)
        return float(terms.sum(-1).mean(1)[mask.bool()].mean())  # over keys; heads; queries

    encoders = [kbi.encoder_from_pretrained(directory / name) for name in ("student", "teacher")]
    model = kbi.RelationDistiller(*encoders)
    model.compile(**QUICK_STEPS)
    found = model.test_on_batch(small_batch, LABELS, return_dict=True)
    attention = divergence(student.attentions[-1], teacher.attentions[-1])
    value = divergence(*map(relation, values))
    np.testing.assert_allclose(found["attention_relation_loss"], attention, rtol=1e-5)
    np.testing.assert_allclose(found["value_relation_loss"], value, rtol=1e-5)
    np.testing.assert_allclose(found["loss"], attention + value, rtol=1e-5)


KINDS = [kbi.MaskedLMDistiller, kbi.RelationDistiller]


@pytest.mark.parametrize("kind", KINDS)
def test_training_changes_every_weight_of_the_student_and_none_of_the_teacher(kind, teacher_config, small_batch):
    model = build(kind, teacher_config)
    model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
    student, teacher = (model.get_layer(name).weights for name in ("student", "teacher"))
    before = [as_arrays(weights) for weights in (student, teacher)]
    model.train_on_batch(small_batch, LABELS)
    for weight, old in zip(teacher, before[1], strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), old, err_msg=weight.path)
    # A relation depends on neither the output of the last block nor what follows its values; a layer is shared by both.
    unused = ("output", "attention_norm", "intermediate") if kind is kbi.RelationDistiller else ()
    changed = {w.path for w, old in zip(student, before[0], strict=True) if (as_arrays([w])[0] != old).any()}
    for weight in student:
        is_unused = (
            weight.path.removeprefix("block_0/").removeprefix("attention/").startswith(unused) if unused else False
        )
        assert (weight.path in changed) != is_unused, weight.path


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_has_no_gradients_of_the_step_before(kind, teacher_config, small_batch):
    """A step that changes nothing, at a rate of 0, leaves nothing behind for the next."""
    updated = []
    for rates in ((1.0,), (0.0, 1.0)):
        model = build(kind, teacher_config)
        model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
        for rate in rates:
            model.optimizer.learning_rate = rate
            model.train_on_batch(small_batch, LABELS)
        updated.append(as_arrays(model.trainable_weights))
    for one, other in zip(*updated, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_teacher_has_no_dropout_and_its_outputs_are_those_of_the_teacher_alone(kind, teacher_config, small_batch):
    config = dataclasses.replace(teacher_config, hidden_dropout_rate=0.5, attention_dropout_rate=0.5)
    model = build(kind, config, dropout_rate=0.5)
    first, second = (model(small_batch, training=True) for _ in range(2))
    for name in first:
        is_same = np.array_equal(*as_arrays([first[name], second[name]]))
        assert is_same == name.startswith("teacher_"), name
    if kind is kbi.MaskedLMDistiller:
        rows = {name: small_batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}
        alone = model.teacher.encoder.predict_on_batch(rows)["sequence_output"]
        np.testing.assert_allclose(as_arrays([first["teacher_sequence_output"]])[0], alone, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_training_saves_of_its_variables_are_the_students(kind, teacher_config):
    model = build(kind, teacher_config, dropout_rate=0.1)
    saved = {id(variable) for variable in variables_of(model)["model"]}
    assert not saved & {id(variable) for variable in model.teacher.variables}
    assert {id(weight) for weight in model.trainable_weights} <= saved
    assert [weight.path for weight in model.trainable_weights if "block_1" in weight.path] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_student_comes_to_imitate_its_teacher(kind, teacher_config, small_batch):
    model = build(kind, teacher_config, learning_rate=3e-2)
    first = model.test_on_batch(small_batch, LABELS, return_dict=True)
    for _ in range(15):
        model.train_on_batch(small_batch, LABELS)
    last = model.test_on_batch(small_batch, LABELS, return_dict=True)
    for name in set(first) - {"masked_lm_accuracy", "masked_lm_loss"}:  # the teacher does not know the words
        assert last[name] < 0.8 * first[name], name


@pytest.mark.parametrize("kind", KINDS)
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


def test_tokens_of_packed_rows_relate_to_their_own_sequence_alone(teacher_config):
    """A row of two sequences has the mean loss of both, weighted by their tokens."""
    ids = np.array([[7, 8, 9, 10, 11, 12, 13]], "int32")
    sequences, positions = np.array([[1, 1, 1, 2, 2, 2, 2]], "int32"), np.array([[0, 1, 2, 0, 1, 2, 3]], "int32")

    def loss(rows, packed):
        keras.utils.set_random_seed(4)
        teacher = kbi.BertEncoder(teacher_config, packed=packed)
        student = kbi.DistilBertEncoder(student_config(teacher_config, num_layers=1), packed=packed)
        model = kbi.RelationDistiller(student, teacher)
        model.compile(**QUICK_STEPS)
        return model.test_on_batch(rows, LABELS, return_dict=True)["loss"]

    def row(ids):
        return {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}

    packed = loss({**row(ids), "sequence_ids": sequences, "position_ids": positions}, True)
    first, second = loss(row(ids[:, :3]), False), loss(row(ids[:, 3:]), False)
    np.testing.assert_allclose(packed, (3 * first + 4 * second) / 7, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.* has no values for pooler")
@pytest.mark.parametrize("groups", [1, 2])
def test_an_albert_is_compared_by_its_last_layer_as_student_and_as_teacher(groups, teacher_config, small_batch):
    """A teacher that computes the same has no loss; one with other weights in its last layer has."""
    sizes = {name: getattr(teacher_config, name) for name in ("vocabulary_size", "hidden_size", "num_heads")}
    config = kbi.AlbertConfig(**sizes, num_layers=3, num_groups=groups, layers_per_group=2, initializer_range=0.3)
    student, teacher = kbi.AlbertEncoder(config), kbi.AlbertEncoder(config)

    def loss(student, teacher):
        model = kbi.RelationDistiller(student, teacher)
        model.compile(**QUICK_STEPS)
        return model.test_on_batch(small_batch, LABELS, return_dict=True)["loss"]

    teacher.set_weights(student.get_weights())
    np.testing.assert_allclose(loss(student, teacher), 0.0, atol=1e-6)
    last = teacher.get_layer(f"block_{2 * groups - 1}").attention.query_key_value
    last.kernel.assign(2 * last.kernel)
    assert loss(student, teacher) > 0.01
    bert = kbi.BertEncoder(dataclasses.replace(teacher_config, num_layers=1))
    assert loss(student, bert) > 0 and loss(bert, student) > 0


@pytest.mark.parametrize("role", ["student", "teacher"])
def test_relations_of_encoders_that_read_one_side_are_refused(role, teacher_config):
    encoders = {"student": kbi.BertEncoder(teacher_config), "teacher": kbi.BertEncoder(teacher_config)}
    encoders[role] = kbi.BertEncoder(dataclasses.replace(teacher_config, direction="left_to_right"))
    with pytest.raises(ValueError, match=f"The {role}'s direction is left_to_right: its tokens do not attend to all"):
        kbi.RelationDistiller(**encoders)


def test_relations_need_no_equal_widths(teacher_config, small_batch):
    model = build(kbi.RelationDistiller, teacher_config, sizes={"hidden_size": 9})
    assert np.isfinite(model.train_on_batch(small_batch, LABELS, return_dict=True)["loss"])


@pytest.mark.parametrize("family", ["distilbert", "bert"])
def test_the_student_opens_in_transformers(family, teacher_config, small_batch, tmp_path):
    prefix = {"distilbert": "DistilBert", "bert": "Bert"}[family]
    build(kbi.MaskedLMDistiller, teacher_config, family=family).save_pretrained(tmp_path / "head")
    open_in_transformers(f"{prefix}ForMaskedLM", tmp_path / "head")
    build(kbi.RelationDistiller, teacher_config, family=family).save_pretrained(tmp_path / "none")
    open_in_transformers(f"{prefix}Model", tmp_path / "none")


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (0, {"sizes": {"hidden_size": 9}}, "student's hidden_size is 9, the teacher's 15: a cosine_weight"),
        (0, {"sizes": {"vocabulary_size": 50}}, "student's vocabulary_size is 50, the teacher's 53: soft targets"),
        (0, {"temperature": 0.0}, "temperature must be above 0, not 0.0"),
        (0, {"cosine_weight": -1.0}, "cosine_loss -1: none may be below 0"),
        (0, {"cosine_weight": 0.0, "soft_target_weight": 0.0}, "nothing is learnt from the teacher"),
        (0, {"soft_targets": "some"}, "soft_targets is 'some', expected 'all' or 'masked'"),
        (1, {"sizes": {"num_heads": 5}}, "student's num_heads is 5, the teacher's 3: relations of attention heads"),
    ],
)
def test_models_that_do_not_fit_are_refused(kind, arguments, message, teacher_config):
    with pytest.raises(ValueError, match=message):
        build(KINDS[kind], teacher_config, **arguments)


def test_a_keras_file_of_student_and_teacher_is_refused(teacher_config, tmp_path):
    with pytest.raises(ValueError, match="cannot hold a RelationDistiller with its teacher"):
        build(kbi.RelationDistiller, teacher_config).save(tmp_path / "model.keras")


def test_the_arithmetic_of_a_step_is_the_students_and_a_forward_pass_of_the_teacher(teacher_config):
    model = build(kbi.MaskedLMDistiller, teacher_config, soft_targets="masked")

    def forward(layers, rows=2, length=5, predictions=3, width=15, inner=21):
        block = 2 * length * (4 * width**2 + 2 * width * inner) + 4 * length**2 * width
        return rows * (layers * block + 2 * predictions * (width + 53) * width + 2 * width**2)

    assert model.training_flops(2, 5, 3) == 3 * forward(1) + forward(2)
