# %% [markdown]
# # Answer questions about a text
#
# A question answerer marks the answer in a passage, or says that it is not there. This one learns from generated
# passages about people, and is tested on people and cities that it has never met.

# %%
import random

import keras_bert_impl as kbi  # before keras
import keras

# %% [markdown]
# ## Passages, questions and answers
#
# An answer is its text and the position of its first character in the passage, as in SQuAD. `None` means that the passage
# does not answer the question. With data of your own, fill the same three lists.

# %% tags=["parameters"]
PASSAGES = 600
EPOCHS = 3

# %%
FIRST = (
    "Ada Bruno Carla Dario Elsa Felix Greta Hugo Irma Jonas Klara Luca Mira Nils Olga Paul Rosa Sven Tilda Ursula Viktor "
    "Wanda Xaver Yves Zita Anton Berta Clara Doris Emil Frida Gustav Hanna Ivan Julia Karl Lotte Martin Nora Otto"
).split()
LAST = [
    first + second
    for first in "Ander Berg Brand Clem Dal Eber Fisch Gold Hall Jan Lind Mont".split()
    for second in "son mann berg ley ford er ini ot".split()
]
CITIES = (
    "Aarhus Basel Cork Dresden Evora Florence Ghent Helsinki Innsbruck Krakow Lyon Malmo Nantes Oslo Porto Riga Seville "
    "Turin Utrecht Vienna Warsaw York Zagreb Athens Bergen Bologna Cologne Dublin Geneva Hamburg London Madrid Naples "
    "Paris Prague Rome Sofia Trieste Venice Zurich"
).split()
THINGS = (
    "a violin,a sailing boat,a telescope,an old piano,a printing press,a race horse,a lighthouse,a tea house".split(",")
)
JOBS = "painter,engineer,baker,surgeon,violinist,gardener,pilot,printer,teacher,glass maker".split(",")
SENTENCES = {
    "born": ["{name} was born in {city} in {year}.", "Born in {year} in {city}, {name} grew up near the river."],
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
for names in (FIRST, LAST, CITIES):
    draw.shuffle(names)
known, new = zip(*((names[: len(names) * 4 // 5], names[len(names) * 4 // 5 :]) for names in (FIRST, LAST, CITIES)))
train = [row for _ in range(PASSAGES) for row in passage_with_questions(*known, draw)]
test = [row for _ in range(50) for row in passage_with_questions(*new, draw)]
print(f"{len(train):,} questions to train on, {len(test):,} about people and cities that occur in none of them")
for question, passage, answer in test[:2]:
    print(f"\n{passage}\n{question}  {answer}")

# %% [markdown]
# ## Training
#
# `fit` takes questions, passages of any length, and answers. With `null_threshold=0.0`, the model leaves a question
# unanswered if "no answer" has the best score.

# %%
keras.utils.set_random_seed(0)
reader = kbi.QuestionAnswerer.from_pretrained("small_english", sequence_length=96, null_threshold=0.0)
reader.optimizer.learning_rate = 5e-4  # default: 5e-5, for larger models


def columns(rows):
    """((questions, passages), answers)."""
    questions, passages, answers = zip(*rows, strict=True)
    return (list(questions), list(passages)), list(answers)


history = reader.fit(*columns(train), batch_size=16, epochs=EPOCHS, verbose=2)

# %% [markdown]
# ## The test
#
# `exact` is the share of answers that are exactly right. `f1` counts partly right answers by their words. Both are SQuAD's
# metrics.

# %%
print(reader.evaluate(*columns(test), return_dict=True, verbose=0))
(questions, passages), answers = columns(test)
found = [best.text for best, *_ in reader.answer(questions, passages)]
right = {"with an answer": [], "without an answer": []}
for text, answer in zip(found, answers):
    if answer is None:
        right["without an answer"].append(text == "")
    else:
        right["with an answer"].append(text == answer[0])
for name, part in right.items():
    print(f"questions {name}: {sum(part)} of {len(part)} right")

# %% [markdown]
# ## A long passage
#
# A passage that is longer than the model's sequence length is read in overlapping windows.

# %%
name, (born, moved) = f"{new[0][0]} {new[1][0]}", new[2][:2]
passage = (
    f"{name} was born in {born} in 1871. "
    + "It rained for most of the year. " * 40
    + f"For most of her life {name} worked as a printer. In 1902 she moved to {moved}."
)
print(passage[:90], "...", passage[-110:])
for question in (
    f"Where was {name} born?",
    f"What was {name}'s profession?",
    f"Where did {name} move?",
    f"What did {name} own?",
):
    (answer,) = reader.answer(question, passage)
    print(f"{question:40} {answer.text or 'not in the passage':20} {answer.probability:.0%}")

# %% [markdown]
# The last answer is wrong: training had no sentences about rain, so the model takes "the year" for something that she
# owned. It knows the kinds of question and passage that it was trained on, and no others. For any question, fine-tune a
# larger checkpoint on SQuAD, or open one that was: `"hf://deepset/bert-base-cased-squad2"`
# ([question answering](../docs/questions.md)).
#
# ## Save

# %%
reader.save_pretrained("my_reader")
print(kbi.QuestionAnswerer.from_pretrained("my_reader").answer(*test[0][:2]))
