"""Questions over whole documents: a BERT in windows of 512 tokens, and the Longformer that `lengthen` makes of it.

    keras-bert finetune --task squad1.1 --data DIR --model DIR --output runs/questions
    python benchmarks/whole_documents.py --model runs/questions/model --squad dev-v1.1.json --output DIR

Paragraphs of one article of SQuAD are joined to documents of up to 3,500 tokens, which the questions about them are
asked of. The figures are SQuAD's, of the same questions: answered from the right paragraph alone, from the document in
windows, and from the document in one row of a Longformer, as it is and, with `--train`, after `--steps` steps on
documents made of ten paragraphs of that file in random order. Writes whole_documents.json and whole_documents.md.
"""

import argparse
import json
import pathlib

import numpy as np

DOCUMENT, WINDOW, BATCH = 3500, 512, 2


def paragraphs_of(path):
    """The paragraphs of a SQuAD file, a list of (context, questions) for each article."""
    articles = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["data"]
    return [[(part["context"], part["qas"]) for part in article["paragraphs"]] for article in articles]


def documents_of(articles, tokenizer, count):
    """(document, paragraph, question) of `count` questions, evenly from all articles."""
    found = []
    for paragraphs in articles:
        sizes = np.cumsum([len(ids) for ids in tokenizer.ids_batch([context for context, _ in paragraphs])])
        kept = [part for part, size in zip(paragraphs, sizes, strict=True) if size < DOCUMENT]
        document = "\n".join(context for context, _ in kept)
        found += [(document, context, question) for context, questions in kept for question in questions]
    return [found[place] for place in np.linspace(0, len(found) - 1, min(count, len(found))).astype(int)]


def mixed_documents(articles, count, parts=10):
    """(questions, documents, answers) to train on: each a paragraph with a question among others, in random order."""
    random = np.random.default_rng(0)
    paragraphs = [part for article in articles for part in article if part[1]]
    questions, documents, answers = [], [], []
    for _ in range(count):
        chosen = [paragraphs[place] for place in random.choice(len(paragraphs), parts, replace=False)]
        place = random.integers(parts)
        question = chosen[place][1][random.integers(len(chosen[place][1]))]
        before = sum(len(context) + 1 for context, _ in chosen[:place])
        answer = question["answers"][0]
        questions.append(question["question"])
        documents.append("\n".join(context for context, _ in chosen))
        answers.append((answer["text"], answer["answer_start"] + before))
    return questions, documents, answers


def figures_of(model, asked, contexts, batch_size):
    """Exact match and F1, percent."""
    from keras_bert_impl.tasks.squad_metrics import evaluate

    found = model.answer([question["question"] for *_, question in asked], contexts, batch_size=batch_size)
    predictions = {question["id"]: answers[0].text for (*_, question), answers in zip(asked, found, strict=True)}
    rows = [{"context": context, "qas": [question]} for _, context, question in asked]
    figures = evaluate({"data": [{"title": "", "paragraphs": rows}]}, predictions)
    return {name: figures[name] for name in ("exact", "f1")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a BERT with a head for questions")
    parser.add_argument("--squad", required=True)
    parser.add_argument("--train", help="a file in SQuAD's layout, to train the Longformer further")
    parser.add_argument("--steps", type=int, default=200, help=f"of {BATCH} documents")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    import keras_bert_impl as kbi
    from keras_bert_impl.checkpoints import lengthen, open_checkpoint
    from keras_bert_impl.optimization import BertAdamW, WarmupLinearDecay

    short = kbi.QuestionAnswerer.from_pretrained(arguments.model, sequence_length=512)
    longer = lengthen(open_checkpoint(arguments.model), max_length=4096, attention_window=WINDOW)
    long = kbi.QuestionAnswerer.from_pretrained(longer)
    asked = documents_of(paragraphs_of(arguments.squad), short.tokenizer, arguments.questions)
    documents, paragraphs, _ = zip(*asked, strict=True)
    figures = {}

    def note(name, model, contexts, batch_size):
        figures[name] = figures_of(model, asked, contexts, batch_size)
        print(name, json.dumps(figures[name]), flush=True)

    note("BERT, the right paragraph", short, paragraphs, 32)
    note("BERT, the document in windows of 512 tokens", short, documents, 16)
    note("Longformer, the document in one row", long, documents, 2)
    if arguments.train:
        count = arguments.steps * BATCH
        questions, contexts, answers = mixed_documents(paragraphs_of(arguments.train), count)
        schedule = WarmupLinearDecay(3e-5, arguments.steps // 10, arguments.steps)
        long.compile(BertAdamW(schedule), long.loss)
        long.fit((questions, contexts), answers, batch_size=BATCH, epochs=1, verbose=2)
        note(f"Longformer, after {arguments.steps} steps on documents", long, documents, 2)
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "whole_documents.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    rows = [f"| {name} | {row['exact']:.1f} | {row['f1']:.1f} |" for name, row in figures.items()]
    table = "\n".join([f"| {len(asked)} questions | exact match | F1 |", "| --- | --- | --- |", *rows]) + "\n"
    (output / "whole_documents.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
