"""Memory of `keras-bert serve` over many mixed requests, as a line in a picture.

    python benchmarks/serving_memory.py --output DIR [--requests 200000] [--size tiny]

16 clients send texts of 1 to 39 words, one in fifty of 400, alone or up to 8 in a request, pairs, and every tenth time
what is refused: no JSON, an unknown model, a text above the limit. The resident memory of the server is noted every
thousand requests.
"""

import argparse
import http.client
import json
import pathlib
import random
import tempfile
import threading
import urllib.parse

import psutil

from serving import FOLDERS, OURS, SETTINGS, running, texts, wait_until_ready, write_checkpoint

CLIENTS = 16
EVERY = 1000  # requests


def bodies(seed, words):
    """Endless pairs (path, body) of one client, of some of the words in a row."""
    draw = random.Random(seed)
    path = "/v1/models/model:predict"

    def text():
        start = draw.randrange(len(words) - 400)
        return " ".join(words[start : start + (400 if draw.random() < 0.02 else draw.randrange(1, 40))])

    while True:
        kind = draw.randrange(10)
        if kind == 0:
            wrong = ((path, "{"), ("/v1/models/none:predict", "{}"), (path, json.dumps({"instances": ["a" * 30_000]})))
            yield draw.choice(wrong)
        elif kind == 1:
            rows = [{"text": text(), "text_pair": text()} for _ in range(2)]
            yield path, json.dumps({"signature_name": "pairs", "instances": rows})
        else:
            yield path, json.dumps({"instances": [text() for _ in range(1 if kind < 8 else draw.randrange(1, 9))]})


def client(address, seed, words, left, statuses):
    """Sends requests until `left`, an iterator that all clients share, has ended."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=60)
    for path, body in bodies(seed, words):
        if next(left, None) is None:
            return
        connection.request("POST", path, body)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)


def measure(requests, size, setting):
    """(requests, MiB) in order, and the number of answers of each status."""
    with tempfile.TemporaryDirectory() as checkpoint:
        write_checkpoint(checkpoint, size)
        before = {process.pid for process in psutil.process_iter()}
        with running(setting, checkpoint) as address:
            wait_until_ready(address, json.dumps({"instances": ["The first text."]}))
            new = [one for one in psutil.process_iter() if one.pid not in before and "serve" in str(one.cmdline())]
            (server,) = [one for one in new if one.num_threads() > 1]
            statuses, found = [], []
            lock, numbers = threading.Lock(), iter(range(requests))

            class Left:
                def __next__(self):
                    with lock:
                        number = next(numbers)
                        if number % EVERY == 0:
                            found.append((number, server.memory_info().rss / 2**20))
                            print(f"{number:,} requests: {found[-1][1]:.0f} MiB", flush=True)
                        return number

            words = [word for text in texts("long") for word in text.split()]
            arguments = [(address, seed, words, Left(), statuses) for seed in range(CLIENTS)]
            clients = [threading.Thread(target=client, args=one) for one in arguments]
            for one in clients:
                one.start()
            for one in clients:
                one.join()
    return found, {status: statuses.count(status) for status in sorted(set(statuses))}


def draw(found, path, title):
    """The picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3), layout="constrained")
    for name, rows in found.items():
        axes.plot([number / 1000 for number, _ in rows], [size for _, size in rows], label=name)
    axes.set(xlabel="thousand requests", ylabel="resident memory, MiB", title=title, ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", default="runs/benchmarks", help="directory for the results")
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--size", default="tiny", choices=["minilm", "tiny"])
    parser.add_argument("--settings", nargs="+", default=[OURS, f"{OURS}, OpenVINO"], choices=[*SETTINGS])
    arguments = parser.parse_args()
    output, found = pathlib.Path(arguments.output), {}
    output.mkdir(parents=True, exist_ok=True)
    for setting in arguments.settings:
        rows, statuses = measure(arguments.requests, arguments.size, setting)
        found["OpenVINO" if setting in FOLDERS else "SavedModel"] = rows
        (output / "serving_memory.json").write_text(json.dumps(found))
        print(f"{setting}: {statuses}", flush=True)
    draw(found, output / "serving_memory.png", f"keras-bert serve, {arguments.size} model, {CLIENTS} clients")


if __name__ == "__main__":
    main()
