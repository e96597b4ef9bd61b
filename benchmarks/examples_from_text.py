"""Text to pre-training examples: `keras-bert prepare-data` and the TF Model Garden's create_pretraining_data.py.

    pip install --no-deps tf-models-official tf_keras
    python benchmarks/examples_from_text.py --output DIR

The latter is the successor of google-research/bert's script. Both read the same text, nine copies of the default corpus
(some 50 MB in files), and write rows of 128 tokens, masked once, with MiniLM's uncased vocabulary. The measured time
includes the start-up of the process.
"""

import functools
import pathlib
import subprocess
import sys
import tempfile
import time

from in_turn import OURS, Case, Setting, Target, main
from sentence_vectors import checkpoint

COPIES = 9


@functools.cache
def corpus():
    """A directory with copies of the default corpus: one sentence per line, a blank line between documents."""
    from keras_bert_impl.text.corpora import PythonDocsCorpus

    directory = pathlib.Path(tempfile.mkdtemp(prefix="keras_bert_impl_"))
    text = "\n\n".join("\n".join(document.sentences) for document in PythonDocsCorpus())
    for copy in range(COPIES):
        (directory / f"{copy}.txt").write_text(text + "\n", encoding="utf-8")
    return directory


def our_command(text, output):
    options = ["--input", str(text), "--vocab", f"{checkpoint()}/vocab.txt", "--static_masks", "--output", str(output)]
    return [sys.executable, "-m", "keras_bert_training", "prepare-data", *options]


def their_command(text, output):
    files = ",".join(str(path) for path in sorted(text.glob("*.txt")))
    output.mkdir()
    options = [f"--input_file={files}", f"--output_file={output}/examples.tfrecord", "--dupe_factor=1"]
    options.append(f"--vocab_file={checkpoint()}/vocab.txt")
    return [sys.executable, "-m", "official.nlp.data.create_pretraining_data", *options]


def measure(setting):
    """Megabytes of text per second."""
    text = corpus()
    megabytes = sum(path.stat().st_size for path in text.glob("*.txt")) / 1e6
    with tempfile.TemporaryDirectory() as directory:
        output = pathlib.Path(directory) / "data"
        command = (our_command if setting.side == OURS else their_command)(text, output)
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stderr)
    return megabytes / seconds


def case():
    settings = [Setting(OURS, precision=""), Setting("Model Garden", precision="")]
    return Case("Text to pre-training examples", "MB", settings, [Target("Model Garden", 30.0)], measure)


if __name__ == "__main__":
    main(case(), __file__)
