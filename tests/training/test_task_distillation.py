"""Fine-tuning with a teacher of the same task: what it says of the training texts counts beside the labels."""

import numpy as np
import pytest
from conftest import WORDS
from made_runs import arrays_of, config_of, write_checkpoint
from made_tasks import write_cola, write_ner, write_stsb

import keras_bert_impl as kbi
from keras_bert_impl.training import finetuning

pytestmark = pytest.mark.usefixtures("quick_steps")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


def write_teacher(path, bias, class_names=("unacceptable", "acceptable"), vocabulary=WORDS):
    """A classifier that gives every text the same logits, with a vocabulary of its own."""
    tokenizer = kbi.WordPieceTokenizer(vocabulary)
    sizes = {"hidden_size": 6, "num_layers": 1, "num_heads": 2, "intermediate_size": 8, "max_length": 48}
    encoder = kbi.BertEncoder(kbi.BertConfig(tokenizer.vocabulary_size, **sizes))
    model = kbi.TextClassifier(encoder, len(class_names), tokenizer=tokenizer, class_names=list(class_names))
    head = model.get_layer("classifier")
    head.kernel.assign(np.zeros(head.kernel.shape))
    head.bias.assign(bias)
    model.save_pretrained(path)
    return path


def loss_of(checkpoint, tmp_path, name, task="cola", **options):
    """The mean loss over all sentences, from the same weights, at a learning rate that changes nothing."""
    usual = {"epochs": 1, "batch_size": 100, "learning_rate": 1e-12, "dropout_rate": 0.0, "output": name}
    return finetuning.run(config_of(checkpoint, tmp_path, task, **{**usual, **options}))["history"][0]["loss"]


def test_the_share_of_the_teacher_in_the_loss_is_what_is_asked(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    teacher = write_teacher(tmp_path / "teacher", [0.5, -1.0])
    labels = loss_of(checkpoint, tmp_path, "labels")
    none, half, all_of_it = (
        loss_of(checkpoint, tmp_path, f"weight{weight}", teacher=str(teacher), teacher_weight=weight)
        for weight in (0.0, 0.5, 1.0)
    )
    assert none == pytest.approx(labels, abs=1e-5) and abs(labels - all_of_it) > 0.05
    assert half == pytest.approx((labels + all_of_it) / 2, abs=1e-5)


def test_the_classes_of_the_teacher_may_have_another_order_and_its_words_too(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    names = ("unacceptable", "acceptable")
    first = write_teacher(tmp_path / "first", [0.5, -1.0], names)
    second = write_teacher(tmp_path / "second", [-1.0, 0.5], names[::-1], [*WORDS[:5], *WORDS[:4:-1]])
    losses = [
        loss_of(checkpoint, tmp_path, f"run_{path.name}", teacher=str(path), teacher_weight=1.0)
        for path in (first, second)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_a_student_learns_what_its_teacher_says_against_the_labels(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    for name, bias in (("no", [6.0, -6.0]), ("yes", [-6.0, 6.0])):
        teacher = write_teacher(tmp_path / name, bias)
        options = {"teacher": str(teacher), "teacher_weight": 1.0, "epochs": 3, "learning_rate": 2e-2}
        finetuning.run(config_of(checkpoint, tmp_path, "cola", output=f"run_{name}", **options))
        model = kbi.TextClassifier.from_pretrained(tmp_path / f"run_{name}" / "model")
        logits = model.predict(["the cat sat on a mat", "dog the ran"], verbose=0)
        assert (logits.argmax(axis=1) == np.argmax(bias)).all()


def test_a_regression_learns_from_the_numbers_of_its_teacher(checkpoint, tmp_path):
    write_stsb(tmp_path / "data")
    finetuning.run(config_of(checkpoint, tmp_path, "sts-b", output="teacher"))
    options = {"task": "sts-b", "teacher": str(tmp_path / "teacher" / "model")}
    labels = loss_of(checkpoint, tmp_path, "labels", task="sts-b")
    half, whole = (
        loss_of(checkpoint, tmp_path, f"run{weight}", teacher_weight=weight, **options) for weight in (0.5, 1.0)
    )
    assert half == pytest.approx((labels + whole) / 2, rel=1e-5) and abs(labels - whole) > 0.01


def test_a_run_with_a_teacher_saves_an_ordinary_student(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    teacher = write_teacher(tmp_path / "teacher", [0.5, -1.0])
    finetuning.run(config_of(checkpoint, tmp_path, "cola", teacher=str(teacher)))
    found = arrays_of(tmp_path / "run" / "model")
    assert {path: array.shape for path, array in found.items()} == {
        path: array.shape for path, array in arrays_of(checkpoint).items()
    }


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("ner", {"teacher": "somewhere"}, "The task ner cannot be distilled, only tasks that find the class"),
        ("sts-b", {"teacher": "somewhere", "temperature": 2.0}, "The task sts-b has no temperature"),
    ],
)
def test_options_that_do_not_fit_are_refused(task, options, message, checkpoint, tmp_path):
    write_ner(tmp_path / "data")
    with pytest.raises(ValueError, match=message):
        finetuning.run(config_of(checkpoint, tmp_path, task, **options))
    assert not (tmp_path / "run").exists()


def test_a_teacher_of_other_classes_is_refused(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    teacher = write_teacher(tmp_path / "teacher", [0.5, -1.0], ("good", "bad"))
    with pytest.raises(ValueError, match="has the classes good, bad, but the task cola has unacceptable, acceptable"):
        finetuning.run(config_of(checkpoint, tmp_path, "cola", teacher=str(teacher)))
    with pytest.raises(ValueError, match="has the classes of no classifier, but the task cola has"):
        finetuning.run(config_of(checkpoint, tmp_path, "cola", teacher=str(checkpoint)))
