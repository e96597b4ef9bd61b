"""The program `example.py` of an export: it runs the model with its runtime, NumPy and `tokenizers`, nothing else."""

from keras_bert_impl.encoders.asked import SENTENCE
from keras_bert_impl.export.formats import FORMATS

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
    "fill_mask": """places = [np.flatnonzero(row == tokenizer.token_to_id("[MASK]")) for row in rows["token_ids"]]
rows["mask_positions"] = np.array(places, "int32")  # equally many in each text, or padded with 0
""",
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
    "fill_mask": 'print([tokenizer.id_to_token(i) for i in (-outputs["logits"][0, 0]).argsort()[:5]])',
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
arrays = {{"token_ids": "ids", "segment_ids": "type_ids", "padding_mask": "attention_mask"}}
rows = {{name: np.array([getattr(one, field) for one in encodings], "int32") for name, field in arrays.items()}}
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
        change=CHANGE.get(task, "").replace("[MASK]", mask),
        answer=ANSWER.get(task, f'print(outputs["{asked.shown}"])'),
    )
