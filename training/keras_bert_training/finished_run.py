"""Scores test files that were added to the data of a finished fine-tuning."""

import json

from keras_bert_impl import checkpoints, distribution
from keras_bert_impl.batching import predict_rows
from keras_bert_impl.console import say
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.json_files import write_json
from keras_bert_impl.models import FeatureTagger
from keras_bert_training.finetuning_report import shown, write_finetuning, write_outputs
from keras_bert_training.finetuning_task import file_of, file_sums
from keras_bert_training.finetuning_trial import batches_of
from keras_bert_training.tasks.tables import BadRows


def score_new_splits(config, task, data, directory):
    """Predicts the test splits of the directory `data` whose file was not there when the run ended, and scores those
    with labels; returns the figures of the run, those of the new splits among them. Arguments as of
    `finetuning_trial.train`."""
    figures = json.loads((directory / "metrics.json").read_text())
    left = [split for split in task.test if split not in figures["predicted"]]
    new = [split for split in left if distribution.from_chief(file_of(task, split, data).is_file())]
    if not new:
        return figures
    model, class_names = finetuned_model(config, task, directory / "model")
    if hasattr(task, "taken_from"):
        task = task.taken_from(model)
    examples = {split: task.read(data, split, BadRows("stop")) for split in new}
    rows, outputs = {}, {}
    for split, part in examples.items():
        rows[split] = task.featurize(model.tokenizer, part, class_names, model.sequence_length)
        outputs[split] = predict_rows(model, batches_of(config, rows[split], model))
        say(f"  {split}: {len(outputs[split]):,} examples of a file that is new since the run")
    if distribution.is_chief():
        write_outputs(task, examples, rows, outputs, None, class_names, directory)
    for split, part in examples.items():
        if part.labels is not None:
            figures["splits"][split] = task.score(part, rows[split], outputs[split], class_names)
            say(f"  {split}: {shown(figures['splits'][split])}")
    if (path := directory / "data.json").is_file():
        write_json(path, {"files": {**json.loads(path.read_text())["files"], **file_sums(task, new, data)}})
    figures["predicted"] += new
    write_json(directory / "metrics.json", figures)
    write_finetuning(directory, config, task, figures)
    return figures


def finetuned_model(config, task, path):
    """The model that a run has saved, and the names of its classes, None for a task without classes."""
    if (path / "model.keras").is_file():
        model = FeatureTagger.from_pretrained(path)
        return model, model.class_names
    checkpoint = checkpoints.open_checkpoint(path)
    names, length = checkpoint.class_names, min(config.sequence_length, checkpoint.config.max_length)
    model = task.build(build_encoder(checkpoint.config), checkpoint.tokenizer, names, length)
    checkpoints.load(model, checkpoint)
    for name, value in checkpoint.arguments_of(type(model)).items():
        setattr(model, name, value)
    return model, names
