"""What distillation is worth: a small student of a sentence embedder, with and without its teacher.

    KERAS_BACKEND=torch python benchmarks/distilled_student.py --teacher DIR --corpus TEXTS --pairs glue/STS-B \
        --output runs/student

The student begins with evenly spaced blocks of the teacher. It is compared as it begins, after training on masked words
without the teacher, and after as many steps of learning its hidden states (`keras-bert distill`, as in TinyBERT's first
stage) on the same text, each with several seeds. The figure is Spearman's correlation of the cosine of two sentences'
vectors with the similarity that people gave them, without any training on such pairs. Interrupted runs are resumed.
"""

import argparse
import pathlib
import statistics

import numpy as np

import keras_bert_impl as kbi
from keras_bert_impl.models.student import copy_layers, student_config
from keras_bert_training import data_preparation, distillation, pretraining
from keras_bert_training.finetuning_task import TASKS
from keras_bert_training.tasks.scores import regression_scores
from keras_bert_training.tasks.tables import BadRows


def write_student(teacher, num_layers, directory):
    """Saves the student before training, unless it is there."""
    if not (directory / "config.json").is_file():
        encoder = kbi.BertEncoder(student_config(teacher.encoder.config, "bert", num_layers))
        copy_layers(encoder, teacher.encoder)
        kbi.TextEmbedder(encoder, teacher.tokenizer).save_pretrained(directory)


def train(options):
    """Trains the students; returns {name: their directories}."""
    output = pathlib.Path(options.output)
    data = {"vocab": f"{options.teacher}/vocab.txt", "pairs": "full_sentences", "sequence_length": options.length}
    data_preparation.run(data_preparation.PrepareConfig(str(output / "data"), options.corpus, **data))
    write_student(kbi.TextEmbedder.from_pretrained(options.teacher), options.layers, output / "copied")
    recipe = {"data": str(output / "data"), "steps": options.steps, "batch_size": 32, "learning_rate": 5e-4}
    recipe |= {"warmup_share": 0.1, "dropout_rate": 0.0}
    students = {"copied blocks": [output / "copied"], "masked words": [], "distilled": []}
    for seed in range(options.seeds):
        place = output / "masked_words" / f"seed_{seed}"
        pretraining.run(pretraining.PretrainConfig(**recipe, output=str(place), init=str(output / "copied"), seed=seed))
        students["masked words"].append(place / "encoder")
        place = output / "distilled" / f"seed_{seed}"
        of_teacher = {
            "teacher": options.teacher,
            "family": "bert",
            "num_layers": options.layers,
            "hidden_state_weight": 1,
        }
        of_teacher |= {"soft_target_weight": 0, "masked_lm_weight": 0, "cosine_weight": 0}
        distillation.run(distillation.DistillConfig(**recipe, **of_teacher, output=str(place), seed=seed))
        students["distilled"].append(place / "encoder")
    return students


def correlation(directory, pairs):
    """Spearman's correlation of a model's cosines with the similarities of `pairs`, the LabelledTexts of STS-B."""
    embedder = kbi.TextEmbedder.from_pretrained(directory)
    vectors = [np.asarray(embedder.embed(texts)) for texts in pairs.inputs]
    first, second = (array / np.linalg.norm(array, axis=1, keepdims=True) for array in vectors)
    return regression_scores(pairs.labels, (first * second).sum(axis=1))["spearman"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", required=True, help="checkpoint directory of a sentence embedder with a vocab.txt")
    parser.add_argument("--corpus", required=True, help="text file, directory or glob, without labels")
    parser.add_argument("--pairs", required=True, help="directory of STS-B")
    parser.add_argument("--output", required=True)
    parser.add_argument("--layers", type=int, default=2, help="of the student")
    parser.add_argument("--length", type=int, default=64, help="tokens of a row")
    parser.add_argument("--steps", type=int, default=500, help="of 32 rows")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    pairs = TASKS["sts-b"].read(options.pairs, "dev", BadRows("stop"))
    students = {"teacher": [options.teacher], **train(options)}
    print("| model | Spearman, % |\n| --- | --- |")
    for name, directories in students.items():
        found = [100 * correlation(directory, pairs) for directory in directories]
        deviation = f" ± {statistics.stdev(found):.1f}" if len(found) > 1 else ""
        print(f"| {name} | {statistics.mean(found):.1f}{deviation} |", flush=True)


if __name__ == "__main__":
    main()
