"""Under what a benchmark measured: commit, machine, versions, and how much other processes took meanwhile."""

import datetime
import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import subprocess

import psutil

LIBRARIES = ("keras", "tensorflow", "jax", "torch", "numpy", "keras-hub", "transformers", "sentence-transformers",
             "tensorflow-text", "tf-models-official", "tokenizers", "openvino")  # fmt: skip
# The clone that is measured, which need not be the one that this file is in.
CLONE = pathlib.Path(importlib.util.find_spec("keras_bert_impl").origin).parents[1]
CODE = ("keras_bert_impl", "benchmarks/*.py", ":(exclude)benchmarks/speed_page.py")  # which only writes what was found


def git(*arguments, clone=CLONE):
    return subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, text=True)


def changed_since(commit, clone=CLONE):
    """Whether code that is measured, committed or not, differs from `commit`; true if the clone lacks the commit."""
    return bool(git("diff", "--quiet", commit, "--", *CODE, clone=clone).returncode or untracked(clone))


def untracked(clone=CLONE):
    return git("ls-files", "--others", "--exclude-standard", "--", *CODE, clone=clone).stdout


def commit_of_code(clone=CLONE):
    """The commit that holds the code as it is, or None if there is none."""
    head = git("rev-parse", "HEAD", clone=clone).stdout.strip()
    return head if head and not changed_since(head, clone) else None


def processor():
    """The model name of the processor."""
    if os.path.exists("/proc/cpuinfo"):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


def versions():
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def seconds_of_cores():
    """(seconds that the cores were busy, those of this process and its children that ended), since their start."""
    times, own = psutil.cpu_times(), os.times()
    idle = times.idle + getattr(times, "iowait", 0)
    # `guest` is contained in `user`.
    busy = sum(times) - idle - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0)
    return busy, own.user + own.system + own.children_user + own.children_system


class Conditions:
    """From its creation until `found` is called.

    What others took is what the cores did less what this process and its children did, as a share of all cores. Of a
    core that two programs share each gets half, so the share tells how busy the machine was, not what it cost.
    """

    def __init__(self):
        self.commit, self.start = commit_of_code(), datetime.datetime.now(datetime.UTC)
        self.busy, self.own = seconds_of_cores()

    def found(self, rounds):
        """What a result says of itself, for its JSON file. The commit is None if the code changed meanwhile."""
        seconds = (datetime.datetime.now(datetime.UTC) - self.start).total_seconds()
        busy, own = seconds_of_cores()
        others = (busy - self.busy - (own - self.own)) / (seconds * psutil.cpu_count())
        return {
            "date": f"{self.start:%Y-%m-%d}",
            "commit": self.commit if self.commit and not changed_since(self.commit) else None,
            "machine": {"processor": processor(), "cores": psutil.cpu_count()},
            "others_took": round(max(others, 0), 2),
            "rounds": rounds,
            "versions": versions(),
        }
