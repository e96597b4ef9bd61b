"""The files beside an exported model: what describes it, tokenizes for it and shows how to run it."""

from keras_bert_impl import startup
from keras_bert_impl.checkpoints import huggingface
from keras_bert_impl.encoders.asked import SENTENCE, kind_of
from keras_bert_impl.export import row_samples
from keras_bert_impl.export.array_names import OUTPUTS
from keras_bert_impl.export.formats import FORMATS
from keras_bert_impl.json_files import write_json
from keras_bert_impl.text.tokenizers.tokenizer_json import write_portable_file

STRIDE = 128  # tokens that two windows over a long context have in common


def write(model, tokenizer, sequence_length, target, format_name, precision="float32", figures=None, **facts):
    """Writes to the directory `target`:

    config.json: Hugging Face's configuration of the model, with the names of its classes, and the field `export`:
        library and its version, kind of model, format, precision, longest row, what is done with longer texts if they
        are not cut, axes of the inputs, figures, and facts.
    tokenizer.json: with it, the `tokenizers` library alone gives the ids; see `tokenizer_json.write_portable_file`.
    the files of the tokenizer and of sentence-transformers that a checkpoint has.
    example.py: a program that runs the model with its runtime alone.
    """
    takes_strings = format_name == "saved_model"
    export = {
        "library": f"keras_bert_impl {startup.VERSION}",
        "model": kind_of(model).__name__,
        "format": format_name,
        "precision": precision,
        "sequence_length": sequence_length,
        **({"long_texts": model.long_texts} if getattr(model, "long_texts", "cut") != "cut" else {}),
        **({"normalize": model.normalize} if hasattr(model, "normalize") else {}),
        **({} if takes_strings else {"inputs": row_samples.arrays_of(model)}),
        **facts,
        "figures": figures,
    }
    huggingface.write_beside(model, target, tokenizer, sequence_length)
    write_json(target / "config.json", {**huggingface.config_of(model), "export": export})
    write_portable_file(
        tokenizer,
        target / "tokenizer.json",
        sequence_length,
        masks=model.asked.task == "fill_mask",
        stride=min(STRIDE, sequence_length // 4) if model.asked.task == "answer" else None,
    )
    text = program(model.asked, format_name, precision, tokenizer.mask_texts[0])
    (target / "example.py").write_text(text, encoding="utf-8")


# The parts of example.py, which runs the model with its runtime, NumPy and `tokenizers`, nothing else.
TEXTS = f'encodings = tokenizer.encode_batch(["{SENTENCE}", "It slept."])'
PAIRS = f'encodings = tokenizer.encode_batch([("{SENTENCE}", "It slept."), ("{SENTENCE}", "Rain fell.")])'
# The lines that encode texts, by task; those of other tasks are TEXTS.
ENCODE = {
    "choose": PAIRS,
    "next_sentence": PAIRS,
    "answer": f"""question, context = "Where did it sit?", "{SENTENCE}"
encoding = tokenizer.encode(question, context)
encodings = [encoding, *encoding.overflowing]  # windows over a long context""",
    "fill_mask": 'encodings = tokenizer.encode_batch(["The capital of France is [MASK]."])',
}
# Lines that change the rows.
CHANGE = {
    "choose": "rows = {name: array[np.newaxis] for name, array in rows.items()}  # (texts, choices, length)\n",
}
# Lines that print answers; those of other tasks print the output that the task shows.
ANSWER = {
    "classify": """for row in outputs["probabilities"]:
    print({label: round(float(share), 3) for label, share in zip(labels, row)})""",
    "label_words": """for encoding, row in zip(encodings, outputs["logits"].argmax(-1)):
    print([(token, labels[label]) for token, label in zip(encoding.tokens, row)])""",
    "choose": 'print("the likeliest ending is number", outputs["probabilities"][0].argmax())',
    "answer": """spans = []
for window, start, end in zip(encodings, outputs["start_logits"], outputs["end_logits"]):
    of_context = [place for place, text in enumerate(window.sequence_ids) if text == 1]
    spans += [(start[i] + end[j], window.offsets[i][0], window.offsets[j][1])
              for i in of_context for j in of_context if i <= j < i + 30]
score, first, last = max(spans)
print(context[first:last])""",
    "fill_mask": """place = encodings[0].tokens.index("[MASK]")
print([tokenizer.id_to_token(i) for i in (-outputs["logits"][0, place]).argsort()[:5]])""",
}
PROGRAM = '''"""Runs the model of this directory: pip install {packages} tokenizers numpy."""

import json
import pathlib

import numpy as np
{imports}
from tokenizers import Tokenizer

here = pathlib.Path(__file__).parent
labels = list(json.loads((here / "config.json").read_text()).get("id2label", {{}}).values())
tokenizer = Tokenizer.from_file(str(here / "tokenizer.json"))
{load}

{encode}
arrays = {{"input_ids": "ids", "token_type_ids": "type_ids", "attention_mask": "attention_mask"}}
rows = {{name: np.array([getattr(one, field) for one in encodings], "int64") for name, field in arrays.items()}}
{change}outputs = run(rows)
{answer}
'''
SAVED_MODEL_PROGRAM = '''"""Runs the SavedModel of this directory: pip install tensorflow tensorflow-text."""

import pathlib

import tensorflow as tf
import tensorflow_text  # the operations of the tokenizer

serve = tf.saved_model.load(pathlib.Path(__file__).parent).signatures["serving_default"]
outputs = serve({arguments})
print(outputs["{output}"].numpy())
'''


def program(asked, format_name, precision, mask="[MASK]"):
    """The text of example.py for a model that is `asked` so, exported in a format, whose tokenizer writes masked words
    as `mask`."""
    task = asked.task
    if format_name == "saved_model":
        arguments = ", ".join(f"{name}=tf.constant({value!r})" for name, value in asked.inputs.items())
        return SAVED_MODEL_PROGRAM.format(arguments=arguments, output=asked.shown)
    packages, imports, load = FORMATS[format_name].program
    return PROGRAM.format(
        packages=packages,
        imports=imports,
        load=load.replace('"f32"', '"bf16"') if precision == "bfloat16" else load,
        encode=ENCODE.get(task, TEXTS).replace("[MASK]", mask),
        change=CHANGE.get(task, ""),
        answer=ANSWER.get(task, f'print(outputs["{OUTPUTS.get(asked.shown, asked.shown)}"])').replace("[MASK]", mask),
    )
