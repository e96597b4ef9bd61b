"""Fine-tunes a text classifier from a pre-trained checkpoint.

    python training/finetune.py --data data/sentences --model runs/pretrain/encoder --output runs/classifier

`--data` holds train.jsonl, validation.jsonl and test.jsonl: {"text": ..., "label": ...} a line, and "text_pair" for
pairs. The output holds:
    run.json                            configuration and versions
    model/                              the best epoch, as Hugging Face's BertForSequenceClassification
    metrics.json, confusion.png         on test.jsonl
    predictions.jsonl                   a line for each test example
    history.json                        losses and accuracies of every epoch
"""

import quiet_start  # noqa: F401

import dataclasses
import json
import pathlib
import sys
import typing

import keras
import matplotlib
import numpy as np
import sklearn.metrics

from keras_bert_impl import BertEncoder, BertTextClassifier, checkpoints
from keras_bert_impl.optimization import BertAdamW, WarmupLinearDecay
from keras_bert_impl.runs import check_run, main, open_run, say, write_json
from keras_bert_impl.tasks import text_classification

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@dataclasses.dataclass
class FinetuneConfig:
    """Fine-tunes a text classifier from a pre-trained checkpoint.

    Args:
        data: directory with train.jsonl, validation.jsonl and test.jsonl.
        model: checkpoint directory to start from.
        output: run directory.
        from_scratch: take only the checkpoint's shape and vocabulary, with random weights: what pre-training brought.
        epochs: passes over train.jsonl; 2 to 4 in the paper.
        batch_size: 16 or 32 in the paper.
        learning_rate: peak; 5e-5, 3e-5 or 2e-5 in the paper.
        warmup_share: of all steps, until the peak; then linear decay to 0.
        dropout_rate: on hidden states and attention while fine-tuning.
        sequence_length: longer texts are cut to so many tokens.
        precision: Keras dtype policy: float32 or mixed_bfloat16.
        jit_compile: XLA, or on torch its own compiler: on, off, or auto: on, but off on torch.
        seed: of new weights, order and dropout.
    """

    data: str
    model: str
    output: str
    from_scratch: bool = False
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 5e-5
    warmup_share: float = 0.1
    dropout_rate: float = 0.1
    sequence_length: int = 128
    precision: str = "float32"
    jit_compile: typing.Literal["auto", "on", "off"] = "auto"
    seed: int = 0


def run(config):
    """Trains, keeps the epoch with the best validation accuracy, scores it on the test split; returns the figures."""
    train, validation, test = (
        text_classification.read_examples(pathlib.Path(config.data) / f"{split}.jsonl")
        for split in ("train", "validation", "test")
    )
    directory = check_run(config.output, config)
    if (directory / "metrics.json").is_file():
        say(f"  {directory} holds the finished run.")
        return json.loads((directory / "metrics.json").read_text())
    class_names = sorted(set(train.labels))
    if len(class_names) < 2:
        raise ValueError(
            f"{config.data}/train.jsonl has the label {class_names[0]!r} only: there is nothing to tell apart."
        )
    train_ids, validation_ids, test_ids = (part.class_ids(class_names) for part in (train, validation, test))
    keras.utils.set_random_seed(config.seed)
    model = build(config, class_names)
    open_run(directory, config)
    compile_for(model, config, steps=config.epochs * -(-len(train.texts) // config.batch_size))
    start = "random weights" if config.from_scratch else config.model
    say(f"  {len(train.texts):,} training texts, {len(class_names)} classes, from {start}")
    best = BestEpoch()
    history = model.fit(
        train.inputs,
        train_ids,
        batch_size=config.batch_size,
        epochs=config.epochs,
        validation_data=(validation.inputs, validation_ids),
        callbacks=[best],
        verbose=1 if sys.stdout.isatty() else 2,
    )
    model.set_weights(best.weights)
    model.save_pretrained(directory / "model")
    write_json(directory / "history.json", history.history)
    return report(model, test, test_ids, directory)


def build(config, class_names):
    """The classifier, with the checkpoint's weights unless from scratch."""
    checkpoint = checkpoints.open_checkpoint(config.model)
    bert = dataclasses.replace(
        checkpoint.config,
        hidden_dropout_rate=config.dropout_rate,
        attention_dropout_rate=config.dropout_rate,
    )
    model = BertTextClassifier(
        BertEncoder(bert, dtype=keras.dtype_policies.get(config.precision)),
        num_classes=len(class_names),
        tokenizer=checkpoint.tokenizer,
        sequence_length=min(config.sequence_length, bert.max_length),
        class_names=class_names,
    )
    if not config.from_scratch:
        # The head is always new: the checkpoint's, if it has one, was for other classes.
        checkpoints.load(model, checkpoint, except_for=("classifier/",))
    return model


def compile_for(model, config, steps):
    """AdamW with warm-up and linear decay over the steps of the run."""
    schedule = WarmupLinearDecay(config.learning_rate, int(config.warmup_share * steps), steps)
    model.compile(
        optimizer=BertAdamW(schedule),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile={"auto": keras.backend.backend() != "torch", "on": True, "off": False}[config.jit_compile],
    )


class BestEpoch(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the best validation accuracy."""

    accuracy = -1.0

    def on_epoch_end(self, epoch, logs=None):
        if logs["val_accuracy"] > self.accuracy:
            self.accuracy, self.weights = logs["val_accuracy"], self.model.get_weights()


def report(model, test, class_ids, directory):
    """Scores the test split, writes predictions, picture and figures; returns the figures."""
    logits = model.predict(test.inputs, verbose=0)
    probabilities = keras.ops.convert_to_numpy(keras.ops.softmax(np.asarray(logits, "float32")))
    names = model.class_names
    figures = text_classification.score(class_ids, probabilities.argmax(axis=1), names)
    text_classification.write_predictions(directory / "predictions.jsonl", test, probabilities, names)
    draw_confusion(figures, directory / "confusion.png")
    write_json(directory / "metrics.json", figures)
    say(f"  test: {figures['accuracy']:.1%} of {figures['examples']:,} right, macro F1 {figures['macro_f1']:.1%}")
    return figures


def draw_confusion(figures, path):
    """The confusion matrix as a picture."""
    names = figures["class_names"]
    size = 2.2 + 0.8 * len(names)
    figure, axis = plt.subplots(figsize=(size + 1, size), layout="constrained")
    sklearn.metrics.ConfusionMatrixDisplay(np.array(figures["confusion"]), display_labels=names).plot(
        ax=axis, cmap="Blues", xticks_rotation=45, colorbar=False
    )
    axis.set_title(f"{figures['examples']:,} test texts, {figures['accuracy']:.1%} right")
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(FinetuneConfig, run)
