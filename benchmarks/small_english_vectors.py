"""small_english goes on learning: masked words of running text and a teacher's vectors of sentences, in one training.

    keras-bert prepare-data --config small_english/prepare_data --vocab small_english --input CORPUS --output DATA
    KERAS_BACKEND=tensorflow python benchmarks/small_english_vectors.py --corpus CORPUS --data DATA --teacher MINILM \
        --output RUN

CORPUS is what benchmarks/small_english_corpus.py wrote, MINILM a checkpoint of sentence-transformers/all-MiniLM-L6-v2.
RUN gets the sentences with the teacher's vectors, the states of the training, from which the same command goes on, and
the checkpoint `RUN/model`: a masked LM that is a sentence embedder, too.
"""

import argparse
import pathlib

import keras
import numpy as np

import keras_bert_impl as kbi
from keras_bert_impl.batching import LengthBatches, Rows
from keras_bert_impl.checkpoints import sentence_transformers
from keras_bert_impl.embedding_losses import EmbedDistillLoss
from keras_bert_impl.encoders.keras_methods import AdaptedModel
from keras_bert_impl.losses import WeightedCrossEntropy
from keras_bert_impl.models.answers import of_length_one
from keras_bert_impl.optimization import BertAdamW, WarmupLinearDecay
from keras_bert_impl.text.corpora import open_corpus
from keras_bert_impl.text.corpora.document import split_of
from keras_bert_training.options.pretrain import ObjectiveOptions, RowOptions
from keras_bert_training.pretraining_data import PretrainingData

SENTENCES = {"wordnet": 190_000, "docstrings": 60_000, "novels": 110_000}  # at most so many of each kind
LONGEST = 96  # tokens of a sentence: fewer than a row of running text has, see Mixture
ROUNDS = 20  # after each of which the losses are shown
AT_ONCE = 8192  # texts whose vectors are computed between two savings


def write_sentences(corpus, path):
    """Writes sentences of the documents that are trained on, each once, in a random order."""
    found, seen = {kind: [] for kind in SENTENCES}, set()
    for document in open_corpus(corpus):
        if split_of(document.name) != "train":
            continue
        kind = document.name.split(".txt#")[0]
        for text in document.sentences:
            letters = sum(character.isalpha() or character == " " for character in text)
            if 3 <= len(text.split()) <= 48 and letters > 0.8 * len(text) and text.lower() not in seen:
                seen.add(text.lower())
                found[kind if kind in SENTENCES else "novels"].append(text)
    random = np.random.default_rng(0)
    chosen = [random.choice(texts, min(len(texts), SENTENCES[kind]), replace=False) for kind, texts in found.items()]
    path.write_text("\n".join(random.permutation(np.concatenate(chosen))) + "\n", encoding="utf-8")


def teacher_vectors(teacher, texts, path):
    """The vectors of a checkpoint, (texts, its width), float16; a file that is there is completed."""
    embedder = kbi.TextEmbedder.from_pretrained(teacher, normalize=True)
    shape = len(texts), embedder.output_shape[-1]
    vectors = np.lib.format.open_memmap(path, "r+" if path.exists() else "w+", "float16", shape)
    for start in range(0, len(texts), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        if not vectors[part].any(axis=1).all():
            vectors[part] = embedder.embed(texts[part], batch_size=128)
            print(f"{start:,} of {len(texts):,} texts have the teacher's vectors", flush=True)
    return vectors


def of_width(vectors, width):
    """The vectors in the `width` directions that keep most of their products, float32; and the share that is kept."""
    vectors = np.asarray(vectors, "float32")
    values, directions = np.linalg.eigh(vectors.T @ vectors)
    return vectors @ directions[:, : -width - 1 : -1], values[-width:].sum() / values.sum()


def turned(vectors, own):
    """The vectors turned to where those of the first texts are nearest to `own`, a student's: products stay as they are
    (orthogonal Procrustes), and the student has less to learn again."""
    left, _, right = np.linalg.svd(vectors[: len(own)].T @ own)
    return vectors @ (left @ right)


class Mixture(keras.utils.PyDataset):
    """Batches of (inputs, labels, weights): one of sentences, one of running text, one of sentences, and so on.

    Keras' TensorFlow backend learns from the first two which axes vary."""

    def __init__(self, sentences, running, steps_per_epoch):
        super().__init__()
        self.sentences, self.running, self.steps_per_epoch, self.epoch = sentences, running, steps_per_epoch, 0

    def __len__(self):
        return self.steps_per_epoch

    def start_epoch(self, epoch):
        self.epoch = epoch

    def on_epoch_end(self):
        self.start_epoch(self.epoch + 1)

    def __getitem__(self, index):
        turn, place = divmod(self.epoch * self.steps_per_epoch + index, 3)
        if place == 1:
            inputs, labels = self.running[turn]
            words, weights = labels["mask_ids"], labels["mask_weights"]
            vectors = np.zeros((len(words), self.sentences.rows.labels.shape[1]), "float32")
        else:
            epoch, number = divmod(2 * turn + place // 2, self.sentences.num_batches)
            if epoch != self.sentences.epoch:
                self.sentences.start_epoch(epoch)
            inputs, vectors = self.sentences[number]
            words, weights = np.zeros((len(vectors), 1), "int32"), np.zeros((len(vectors), 1), "float32")
            inputs = {**inputs, "mask_positions": words}
        is_taught = np.full(len(vectors), float(place != 1), "float32")
        return inputs, {"words": words, "vector": vectors}, {"words": weights, "vector": is_taught}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("corpus", "data", "teacher", "output"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--model", default="small_english", help="the checkpoint that goes on learning")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch_size", type=int, default=192, help="sentences; of running text a sixth")
    parser.add_argument("--learning_rate", type=float, default=6e-4)
    parser.add_argument("--vector_weight", type=float, default=5.0)
    parser.add_argument("--precision", default="mixed_bfloat16")
    options = parser.parse_args()
    output = pathlib.Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    if not (output / "sentences.txt").exists():
        write_sentences(options.corpus, output / "sentences.txt")
    texts = (output / "sentences.txt").read_text(encoding="utf-8").splitlines()
    taught = teacher_vectors(options.teacher, texts, output / "teacher.npy")

    words = kbi.MaskedLM.from_pretrained(options.model, dtype=options.precision)
    for layer in words._flatten_layers():
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0  # no text is seen often; config.json keeps the rate, for fine-tuning
    embedder = kbi.TextEmbedder(words.encoder, words.tokenizer)
    taught, kept = of_width(taught, embedder.output_shape[-1])
    print(f"{len(texts):,} sentences; {kept:.1%} of the teacher's vectors is within {taught.shape[1]} directions")
    taught = turned(taught, of_length_one(embedder.embed(texts[:AT_ONCE], batch_size=128)))
    rows = Rows.from_texts(words.tokenizer, texts, None, LONGEST, taught)
    sentences = LengthBatches(words.tokenizer, rows, options.batch_size, LONGEST, multiple=8)
    rows = RowOptions(batch_size=options.batch_size // 6)
    data = PretrainingData(options.data, rows, ObjectiveOptions(masking_rate=0.2), seed=0)

    # Both heads stand over one graph of the encoder.
    model = AdaptedModel(words.input, {"words": words.output, "vector": embedder.output})
    model.encoder = words.encoder
    model.compile(
        optimizer=BertAdamW(WarmupLinearDecay(options.learning_rate, options.steps // 20, options.steps), beta_2=0.98),
        loss={"words": WeightedCrossEntropy(), "vector": EmbedDistillLoss()},
        loss_weights={"words": 1.0, "vector": options.vector_weight},
        jit_compile=False,
    )
    model.fit(
        Mixture(sentences, data.opened("train", repeat=True), options.steps // ROUNDS),
        epochs=ROUNDS,
        callbacks=[kbi.callbacks.ExactResume(output / "state")],
        verbose=2,
    )
    words.save_pretrained(output / "model")
    # As the checkpoint of a masked LM, it says by these files how its vectors are made.
    sentence_transformers.write(kbi.TextEmbedder(words.encoder, words.tokenizer, normalize=True), output / "model")
    print(f"{output}/model holds the checkpoint")


if __name__ == "__main__":
    main()
