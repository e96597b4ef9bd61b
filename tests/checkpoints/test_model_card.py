"""The model card that a save writes: what it says is true, its programs run, and nobody's own file is replaced."""

import dataclasses
import json
import re
import warnings

import huggingface_hub
import made_tokenizers
import pytest
from conftest import WORDS, revealing_config
from families import CONFIGS

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import CardFacts, Figure, facts_of, huggingface, model_card, write_card
from keras_bert_impl.encoders import build_encoder

MODELS = {
    "TextClassifier": lambda encoder, tokenizer: kbi.TextClassifier(encoder, 2, tokenizer, class_names=["bad", "good"]),
    "TextRegressor": kbi.TextRegressor,
    "Reranker": kbi.Reranker,
    "TokenClassifier": lambda encoder, tokenizer: kbi.TokenClassifier(encoder, 2, tokenizer, class_names=["O", "A"]),
    "QuestionAnswerer": kbi.QuestionAnswerer,
    "NextSentencePredictor": kbi.NextSentencePredictor,
    "MultipleChoice": kbi.MultipleChoice,
    "MaskedLM": kbi.MaskedLM,
    "Pretrainer": lambda encoder, tokenizer: kbi.Pretrainer(encoder),
    "TextEmbedder": kbi.TextEmbedder,
    "BertEncoder": lambda encoder, tokenizer: encoder,
}


@pytest.fixture
def saved(tmp_path, small_tokenizer, monkeypatch):
    """Function from a kind of model to the text of its card; the working directory is then that of the checkpoint."""

    def save(kind, tokenizer=small_tokenizer):
        encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=32))
        huggingface.save(MODELS[kind](encoder, tokenizer), tmp_path, tokenizer)
        monkeypatch.chdir(tmp_path)
        return (tmp_path / "README.md").read_text(encoding="utf-8")

    return save


def program(card, library):
    """The program of a card in a library; None if it has none."""
    found = re.search(rf"### In {library}\n\n```python\n(.*?)```", card, re.DOTALL)
    return found and found[1]


def printed(card, library, capsys):
    """What the program of a card in a library prints."""
    exec(compile(program(card, library), library, "exec"), {})
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize("kind", MODELS)
def test_the_programs_of_a_card_run_as_they_stand(saved, kind, capsys):
    pytest.importorskip("transformers")
    card = saved(kind)
    for library in ("keras_bert_impl", "sentence-transformers" if kind == "TextEmbedder" else "transformers"):
        assert printed(card, library, capsys) not in ("", "None")


FAMILIES = {
    "Electra": lambda words: words,
    "Roberta": lambda words: made_tokenizers.byte_pair_tokenizer(),
    "ModernBert": lambda words: made_tokenizers.modernbert_tokenizer(),
    "Albert": lambda words: made_tokenizers.albert_tokenizer(),
    "XLNet": lambda words: made_tokenizers.xlnet_tokenizer(),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_programs_run_for_each_family_and_its_tokenizers(tmp_path, small_tokenizer, monkeypatch, family, capsys):
    pytest.importorskip("transformers")
    tokenizer = FAMILIES[family](small_tokenizer)
    sizes = {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 40, "pad_id": tokenizer.pad_id}
    shape = CONFIGS[family]
    config = dataclasses.replace(shape, **{name: value for name, value in sizes.items() if hasattr(shape, name)})
    kbi.TextClassifier(build_encoder(config), 2, tokenizer).save_pretrained(tmp_path)
    monkeypatch.chdir(tmp_path)
    for library in ("keras_bert_impl", "transformers"):
        assert printed((tmp_path / "README.md").read_text(encoding="utf-8"), library, capsys)


@pytest.mark.parametrize("kind", ["MaskedLM", "BertEncoder"])
def test_without_a_tokenizer_the_programs_take_ids(saved, kind, capsys):
    card = saved(kind, None)
    for library in ("keras_bert_impl", "transformers"):
        assert "1, 3, 15" in printed(card, library, capsys)


def test_the_metadata_are_those_that_the_hub_reads_and_no_others(saved):
    card = saved("TextClassifier")
    assert "## Training" not in card and "## Figures" not in card
    data = huggingface_hub.ModelCard(card).data
    assert data.license is None and data.language is None and data.base_model is None and data.eval_results is None
    figure = Figure("accuracy", 0.75, "dev", 0.05, "80 examples")
    facts = CardFacts("mit", ["en"], "google-bert/bert-base-uncased", ["nyu-mll/glue"], "rte", [], [], [figure])
    assert write_card(".", facts)
    data = huggingface_hub.ModelCard.load("README.md").data
    assert data.library_name == "transformers" and data.pipeline_tag == "text-classification"
    assert (data.license, data.language, data.base_model) == ("mit", ["en"], "google-bert/bert-base-uncased")
    (result,) = data.eval_results
    assert (result.metric_type, result.metric_value, result.dataset_split) == ("accuracy", 0.75, "dev")


def test_figures_stand_beside_baselines_and_stay_when_other_facts_are_added(saved):
    saved("TextClassifier")
    baselines = (("always the most frequent class", 0.5),)
    figures = [
        Figure("accuracy", 0.75, "dev", model_card.deviation_of_share(0.75, 48), "48 examples", baselines),
        Figure("f1", 0.75, "dev", baselines=baselines, class_name="not_same"),
    ]
    write_card(".", CardFacts(task="rte", data=[("training rows", 2490)], figures=figures))
    write_card(".", CardFacts(license="mit"))
    card = open("README.md", encoding="utf-8").read()
    assert "| accuracy, dev | 0.7500 | 0.0625 over 48 examples | 0.5000 |" in card
    assert "| f1 of class not\\_same, dev | 0.7500 |  | 0.5000 |" in card and "| training rows | 2,490 |" in card
    results = huggingface_hub.ModelCard.load("README.md").data.eval_results
    assert [result.metric_type for result in results] == ["accuracy", "f1"], "as the hub calls them"


def test_a_card_of_an_earlier_version_is_read(saved):
    text = saved("TextClassifier") + '<!-- facts: {"figures": [["f1", 0.5, "dev", null, "", [["always", 0.4]]]]} -->\n'
    line = {"license": None, "data": []}
    text = text.replace('{"figures"', json.dumps(line)[:-1] + ', "figures"')
    open("README.md", "w", encoding="utf-8").write(text)
    (figure,) = facts_of(".").figures
    assert figure == Figure("f1", 0.5, "dev", None, "", (("always", 0.4),), "")


@pytest.fixture
def with_new_head(tmp_path, small_tokenizer):
    """A classifier with a new head over the encoder of a checkpoint, which has learnt nothing yet."""
    huggingface.save(kbi.BertEncoder(revealing_config(small_tokenizer, max_length=32)), tmp_path / "encoder")
    with pytest.warns(UserWarning, match="newly initialised"):
        return kbi.TextClassifier.from_pretrained(tmp_path / "encoder", num_classes=2, tokenizer=small_tokenizer)


def card_of(directory):
    return (directory / "README.md").read_text(encoding="utf-8")


def test_the_card_of_a_new_head_says_that_it_is_untrained_also_after_it_was_opened_again(with_new_head, tmp_path):
    with_new_head.save_pretrained(tmp_path / "one")
    assert "**Not trained:** `classifier`. " in card_of(tmp_path / "one")
    with pytest.warns(UserWarning, match="saved before classifier had been trained, so its values are random"):
        again = kbi.TextClassifier.from_pretrained(tmp_path / "one")
    again.save_pretrained(tmp_path / "two")
    assert "**Not trained:** `classifier`. " in card_of(tmp_path / "two")
    write_card(tmp_path / "two", CardFacts(license="mit"))
    assert "**Not trained:** `classifier`. " in card_of(tmp_path / "two")


def train(model):
    model.fit(["the cat", "a dog"], [0, 1], epochs=1, verbose=0)


WAYS_TO_LEARN = {
    "fit": train,
    "set_weights": lambda model: model.set_weights([weight + 0.5 for weight in model.get_weights()]),
}


@pytest.mark.parametrize("way", WAYS_TO_LEARN)
def test_a_head_that_has_learnt_is_not_called_untrained(with_new_head, tmp_path, way):
    with_new_head.save_pretrained(tmp_path / "model")
    WAYS_TO_LEARN[way](with_new_head)
    with_new_head.save_pretrained(tmp_path / "model")
    assert "Not trained" not in card_of(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        kbi.TextClassifier.from_pretrained(tmp_path / "model")


def test_another_head_in_the_place_of_an_untrained_one_is_not_told_about_it(with_new_head, tmp_path):
    """The field of config.json is about the `classifier` that is there."""
    with_new_head.save_pretrained(tmp_path / "model")
    with pytest.warns(UserWarning, match="newly initialised") as told:
        model = kbi.TextClassifier.from_pretrained(tmp_path / "model", num_classes=3)
    assert sum(issubclass(one.category, UserWarning) for one in told) == 1
    train(model)
    model.save_pretrained(tmp_path / "other")
    assert "Not trained" not in card_of(tmp_path / "other")


def test_a_readme_of_somebody_else_is_never_replaced_and_one_of_ours_is(tmp_path, small_config):
    encoder, readme = kbi.BertEncoder(small_config), tmp_path / "README.md"
    readme.write_text("My own words.")
    encoder.save_pretrained(tmp_path)
    assert not write_card(tmp_path) and readme.read_text() == "My own words."
    readme.unlink()
    encoder.save_pretrained(tmp_path)
    write_card(tmp_path, CardFacts(license="mit"))
    with pytest.warns(UserWarning, match="license"):
        encoder.save_pretrained(tmp_path)
    assert "mit" not in readme.read_text()


def test_facts_are_added_to_those_of_a_card(tmp_path, small_config):
    kbi.BertEncoder(small_config).save_pretrained(tmp_path)
    figures, path = [Figure("loss", -0.5, "dev", baselines=(("by -- chance", 1.0),))], tmp_path / "README.md"
    write_card(tmp_path, CardFacts(data=[("rows -->", 7)], figures=figures, languages=["en"]))
    write_card(tmp_path, CardFacts(license="mit", languages=("de",)))
    card = path.read_text()
    found = facts_of(tmp_path)
    assert (found.license, list(found.languages), found.data) == ("mit", ["de"], [("rows -->", 7)])
    assert found.figures == figures and "| loss, dev | -0.5000 |" in card and card.count("-->") == card.count("<!--")
    assert huggingface_hub.ModelCard(card).data.license == "mit"


def test_names_of_classes_mean_nothing_to_markdown_and_html(tmp_path, small_tokenizer):
    names = ["a|b", "<script>alert(1)</script>", "two\nlines", "`code`"]
    encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=32))
    kbi.TextClassifier(encoder, 4, kbi.WordPieceTokenizer(WORDS), class_names=names).save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "a\\|b, &lt;script&gt;alert(1)&lt;/script&gt;, two lines, \\`code\\`." in card
