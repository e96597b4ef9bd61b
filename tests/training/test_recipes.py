"""Every recipe of the package is read, builds its model, and names the batch for which its learning rate was chosen."""

import re
import types

import pytest
from conftest import WORDS
from made_tokenizers import xlnet_tokenizer
from tiers import full_but, once

from keras_bert_impl.text.tokenizers import MPNetTokenizer, WordPieceTokenizer
from keras_bert_training import finetuning, pretraining, pretraining_model
from keras_bert_training.options.recipes import RECIPES
from keras_bert_training.runs import parse

pytestmark = once

OF_PRETRAINING = sorted(path for path in RECIPES.rglob("*.yaml") if path.stem.startswith(("phase", "lamb", "pretrain")))
SMALL = {"num_layers": 1, "hidden_size": 12, "num_heads": 3, "intermediate_size": 7, "batch_size": 2}
DATA = types.SimpleNamespace(
    tokenizer=WordPieceTokenizer(WORDS[:11]),
    **{"packed": False, "has_pairs": True, "pairs": "next_sentence"},
)
ORDERS = types.SimpleNamespace(**{**vars(DATA), "pairs": "sentence_order"})
MPNETS = MPNetTokenizer(["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "cat", "<mask>"])
DATA_OF = {
    "albert": ORDERS,
    "mpnet": types.SimpleNamespace(**{**vars(DATA), "tokenizer": MPNETS}),
    "xlnet": types.SimpleNamespace(**{**vars(DATA), "tokenizer": xlnet_tokenizer()}),
}


# One of each size.
QUICK = {path.parent.name: path for path in OF_PRETRAINING}.values()


def name_of(path):
    return f"{path.parent.name}-{path.stem}"


def read(path):
    return parse(pretraining.PretrainConfig, ["--config", str(path), "--data", "data", "--output", "runs"])


def batch_of_the_rate(path):
    """The rows for which the comments of a recipe say that its learning rate was chosen."""
    comments = " ".join(line[1:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    return int(re.search(r"belongs to\s+batches\s+of\s+([\d,]+)\s+rows", comments)[1].replace(",", ""))


def test_the_learning_rate_belongs_to_the_batch_of_the_recipe():
    assert len(OF_PRETRAINING) > 20
    for path in OF_PRETRAINING:
        assert batch_of_the_rate(path) == read(path).batch_size, path


def test_the_learning_rate_of_fine_tuning_belongs_to_its_batch():
    path = RECIPES / "quickstart" / "finetune.yaml"
    arguments = ["--config", str(path), "--data", "d", "--model", "m", "--output", "o", "--task", "t"]
    assert batch_of_the_rate(path) == parse(finetuning.FinetuneConfig, arguments).batch_size


@pytest.mark.parametrize("path", full_but(OF_PRETRAINING, *QUICK), ids=name_of)
def test_a_recipe_builds_its_model_and_optimizer(path):
    config = read(path)
    for name, value in SMALL.items():
        setattr(config, name, value)
    steps = config.steps or 100
    data = DATA_OF.get(config.size.split("_")[0], DATA)
    model = pretraining_model.build_pretrainer(config, data, False, pretraining_model.schedule_of(config, steps))
    type_of = {"adamw": "BertAdamW", "lamb": "BertLamb", "stable_adamw": "BertStableAdamW"}
    assert type(model.optimizer).__name__ == type_of[config.optimizer]
    assert model.encoder.config.hidden_dropout_rate == config.dropout_rate


def test_a_recipe_trains_on_the_rows_and_the_size_in_its_name():
    for path in RECIPES.glob("*/*_[0-9]*.yaml"):
        config = read(path)
        assert config.sequence_length == int(path.stem.split("_")[-1]), path
        assert config.size == path.parent.name or config.sequence_length == 512, path


@pytest.mark.parametrize(("batch", "rate"), [(4096, 0.001768), (8192, 0.0025), (16384, 0.003536), (32768, 0.005)])
def test_lamb_has_the_rates_and_the_warm_up_of_its_paper(batch, rate):
    """You et al. 2020: square-root scaling from 0.005 at 32,768 rows, and 3,125 steps of warm-up at every batch."""
    config = read(RECIPES / "bert_large" / f"lamb_{batch}_phase_128.yaml")
    assert config.learning_rate == rate and rate == pytest.approx(0.005 * (batch / 32768) ** 0.5, rel=1e-3)
    assert config.warmup_share * config.steps == pytest.approx(3125, rel=2e-3)
    assert config.batch_size * config.steps == pytest.approx(0.9 * 512e6, rel=1e-3)


@pytest.mark.parametrize("batch", [4096, 8192, 16384, 32768])
def test_the_second_phase_with_lamb_scales_that_of_nvidia(batch):
    config = read(RECIPES / "bert_large" / f"lamb_{batch}_phase_512.yaml")
    assert config.learning_rate == pytest.approx(0.004 * (batch / 32768) ** 0.5, rel=1e-3)
    assert config.warmup_share * config.steps == pytest.approx(200, rel=2e-3)
    assert config.batch_size * config.steps == 32768 * 1563
