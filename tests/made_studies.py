"""A small ablation study, and options for `ablation.run`."""

import keras
import yaml

from keras_bert_impl.studies import ablation

COMPILED = "on" if keras.backend.backend() == "jax" else "off"
RECIPE = {
    "prepare": {"vocabulary_size": 500, "sequence_length": 32},
    "pretrain": {
        "size": "bert_tiny",
        "num_layers": 1,
        "hidden_size": 16,
        "steps": 4,
        "batch_size": 4,
        "validation_batches": 1,
        "jit_compile": COMPILED,
    },
    "finetune": {"epochs": 1, "batch_size": 8, "sequence_length": 32, "learning_rate": 1e-3, "jit_compile": COMPILED},
    "task_rows": 16,
}
LEFT = {"direction": "left_to_right"}
ROWS = [
    {"name": "joined", "pretrain": LEFT, "join": {"direction": "right_to_left"}, "paper": {"SQuAD": 77.8}},
    {"name": "left, BiLSTM", "pretrain": LEFT, "finetune": {"bilstm_units": 3}},
    {"name": "left, features", "pretrain": LEFT, "features": {"features": "last", "units": 3}},
]


def write_yaml(path, content):
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def study_of(folder, rows=ROWS, **fields):
    return write_yaml(folder / "study.yaml", {"title": "A study", "paper": "table 5", **fields, "rows": rows})


def config_of(folder, data, output="run", rows=ROWS, **options):
    usual = {"study": study_of(folder, rows), "seeds": 1}
    recipe = write_yaml(folder / "recipe.yaml", RECIPE)
    return ablation.AblateConfig(str(folder / output), recipe=recipe, data=str(data), **{**usual, **options})
