"""`finetune` trains families whose tokenizer is not WordPiece, on every family of tasks."""

import pytest
from families import CONFIGS, encoder_of
from made_runs import config_of
from made_tasks import write_codah, write_mrpc, write_ner, write_squad
from made_tokenizers import (
    albert_tokenizer,
    bigbird_tokenizer,
    byte_pair_tokenizer,
    deberta_tokenizer,
    deberta_v1_tokenizer,
    eurobert_tokenizer,
    modernbert_tokenizer,
    xlm_roberta_tokenizer,
    xlnet_tokenizer,
)
from tiers import full_but, once

import keras_bert_impl as kbi
from keras_bert_training import finetuning

pytestmark = once

TOKENIZERS = {
    "Roberta": byte_pair_tokenizer,
    "Longformer": byte_pair_tokenizer,
    "BigBird": bigbird_tokenizer,
    "Albert": albert_tokenizer,
    "XLMRoberta": xlm_roberta_tokenizer,
    "XLNet": xlnet_tokenizer,
    "ModernBert": modernbert_tokenizer,
    "EuroBert": eurobert_tokenizer,
    "Deberta": deberta_v1_tokenizer,
    "DebertaV2": deberta_tokenizer,
}
TASKS = {
    "mrpc": (write_mrpc, kbi.TextClassifier),
    "ner": (write_ner, kbi.TokenClassifier),
    "squad2.0": (lambda folder: write_squad(folder, "v2.0"), kbi.QuestionAnswerer),
    "codah": (write_codah, kbi.MultipleChoice),
}


@pytest.fixture(scope="module")
def checkpoint(request, tmp_path_factory):
    """A directory with a model of a family and its tokenizer."""
    name, tokenizer = request.param, TOKENIZERS[request.param]()
    fields = {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 64, "pad_id": tokenizer.pad_id}
    config = CONFIGS[name].__class__(**{**vars(CONFIGS[name]), **fields})
    directory = tmp_path_factory.mktemp("checkpoint")
    kbi.MaskedLM(encoder_of(config)(config), tokenizer).save_pretrained(directory)
    return directory


CASES = [(family, task) for family in TOKENIZERS for task in TASKS]
# Each task once; XLNet has its special tokens at the end of a row.
QUICK = [
    ("Albert", "codah"),
    ("Roberta", "ner"),
    ("XLNet", "squad2.0"),
    ("ModernBert", "mrpc"),
    ("EuroBert", "squad2.0"),
]


@pytest.mark.parametrize(
    ("checkpoint", "task"),
    full_but(CASES, *QUICK),
    indirect=["checkpoint"],
    scope="module",
)
def test_a_task_is_trained_with_the_whole_vocabulary(checkpoint, task, tmp_path):
    write, kind = TASKS[task]
    write(tmp_path / "data")
    finetuning.run(config_of(checkpoint, tmp_path, task, epochs=1))
    trained = kbi.MaskedLM.from_pretrained(checkpoint).tokenizer
    model = kind.from_pretrained(next(tmp_path.glob("*/model")))
    assert model.tokenizer == trained
    assert model.encoder.config.vocabulary_size == trained.vocabulary_size
