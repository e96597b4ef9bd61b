"""The published checkpoints by name, and how they are fetched from the Hugging Face hub."""

import dataclasses
import pathlib
import typing

import huggingface_hub

from keras_bert_impl.configurations.known_families import count_parameters, families_by_model_type
from keras_bert_impl.suggestions import did_you_mean

SCHEME = "hf://"
# The model that lies in the package: a name like the published ones, whose files are here already.
PACKAGED = "small_english"
PACKAGED_DIRECTORY = pathlib.Path(__file__).parent / PACKAGED
# Weights are fetched as safetensors if a repository has them, otherwise as pickles.
SMALL_FILES = ("*.json", "vocab.txt", "merges.txt", "spiece.model", "spm.model", "sentencepiece.bpe.model")
WEIGHTS = (("model*.safetensors",), ("pytorch_model*.bin",))


class Published(typing.NamedTuple):
    """A published checkpoint: short name, Hugging Face's owner/name, size, and vocabulary.

    `repository` is None for the model in the package.
    """

    name: str
    repository: str | None
    num_layers: int
    hidden_size: int
    num_heads: int
    vocabulary_size: int
    cased: bool
    model_type: str = "bert"  # in config.json, which names the family
    embedding_size: int | None = None  # where it is a field of the configuration
    max_length: int | None = None  # where it is not the usual one of the family

    @property
    def num_parameters(self):
        """The number of weights of the encoder, including its pooler if it has one."""
        names = ("vocabulary_size", "hidden_size", "num_layers", "num_heads", "embedding_size", "max_length")
        fields = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        config_class = families_by_model_type()[self.model_type].config_class
        size = self.name.replace("-", "_")
        if size in config_class.named_sizes:  # which can say more than these fields
            config = config_class.from_name(size, vocabulary_size=self.vocabulary_size)
        else:
            config = config_class(**fields)
        # Every layer after the second has as many as that one: a table of sixty names is printed at once.
        one, two = (count_parameters(dataclasses.replace(config, num_layers=count)) for count in (1, 2))
        return one + (two - one) * (self.num_layers - 1)


UNCASED, CASED, CHINESE = (30522, False), (28996, True), (21128, False)
BASE, LARGE, HALF = (12, 768, 12), (24, 1024, 16), (6, 768, 12)
# Devlin et al. 2019, and https://github.com/google-research/bert for those that came after the paper.
PUBLISHED = (
    Published(PACKAGED, None, 4, 256, 4, 8000, False, max_length=128),
    *(
        Published(name, f"google-bert/{name}", *shape, *vocabulary)
        for name, shape, vocabulary in (
            ("bert-base-uncased", BASE, UNCASED),
            ("bert-large-uncased", LARGE, UNCASED),
            ("bert-base-cased", BASE, CASED),
            ("bert-large-cased", LARGE, CASED),
            ("bert-large-uncased-whole-word-masking", LARGE, UNCASED),
            ("bert-large-cased-whole-word-masking", LARGE, CASED),
            ("bert-base-multilingual-cased", BASE, (119547, True)),
            ("bert-base-multilingual-uncased", BASE, (105879, False)),
            ("bert-base-chinese", BASE, CHINESE),
        )
    ),
    # The 24 miniatures of Turc et al. 2019.
    *(
        Published(name, f"google/{name}", layers, width, width // 64, *UNCASED)
        for layers in (2, 4, 6, 8, 10, 12)
        for width in (128, 256, 512, 768)
        for name in (f"bert_uncased_L-{layers}_H-{width}_A-{width // 64}",)
    ),
    # Joshi et al. 2020.
    Published("spanbert-base-cased", "SpanBERT/spanbert-base-cased", *BASE, *CASED),
    Published("spanbert-large-cased", "SpanBERT/spanbert-large-cased", *LARGE, *CASED),
    # Cui et al. 2019, of whom the last two also train as RoBERTa does, but are BERTs.
    *(
        Published(name, f"hfl/{name}", *shape, *CHINESE)
        for name, shape in (
            ("chinese-bert-wwm", BASE),
            ("chinese-bert-wwm-ext", BASE),
            ("chinese-roberta-wwm-ext", BASE),
            ("chinese-roberta-wwm-ext-large", LARGE),
        )
    ),
    # Sanh et al. 2019.
    *(
        Published(name, f"distilbert/{name}", *HALF, *vocabulary, "distilbert")
        for name, vocabulary in (
            ("distilbert-base-uncased", UNCASED),
            ("distilbert-base-cased", CASED),
            ("distilbert-base-multilingual-cased", (119547, True)),
        )
    ),
    # Clark et al. 2020.
    *(
        Published(f"electra-{size}-{role}", f"google/electra-{size}-{role}", *shape, *UNCASED, "electra", embedding)
        for size, embedding, discriminator, generator in (
            ("small", 128, (12, 256, 4), (12, 256, 4)),
            ("base", 768, BASE, (12, 256, 4)),
            ("large", 1024, LARGE, (24, 256, 4)),
        )
        for role, shape in (("discriminator", discriminator), ("generator", generator))
    ),
    # Liu et al. 2019, its distilled form of Sanh et al. 2019, and Conneau et al. 2020.
    Published("roberta-base", "FacebookAI/roberta-base", *BASE, 50265, True, "roberta"),
    Published("roberta-large", "FacebookAI/roberta-large", *LARGE, 50265, True, "roberta"),
    Published("distilroberta-base", "distilbert/distilroberta-base", *HALF, 50265, True, "roberta"),
    Published("xlm-roberta-base", "FacebookAI/xlm-roberta-base", *BASE, 250002, True, "xlm-roberta"),
    Published("xlm-roberta-large", "FacebookAI/xlm-roberta-large", *LARGE, 250002, True, "xlm-roberta"),
    # Lan et al. 2020.
    *(
        Published(f"albert-{size}-{version}", f"albert/albert-{size}-{version}", *shape, 30000, False, "albert")
        for version in ("v1", "v2")
        for size, shape in (("base", BASE), ("large", LARGE), ("xlarge", (24, 2048, 16)), ("xxlarge", (12, 4096, 64)))
    ),
    # Song et al. 2020.
    Published("mpnet-base", "microsoft/mpnet-base", *BASE, 30527, False, "mpnet"),
    # Beltagy et al. 2020; the last answers questions.
    *(
        Published(name, f"allenai/{name}", *shape, 50265, True, "longformer")
        for name, shape in (
            ("longformer-base-4096", BASE),
            ("longformer-large-4096", LARGE),
            ("longformer-large-4096-finetuned-triviaqa", LARGE),
        )
    ),
    # Zaheer et al. 2020; the last answers questions.
    *(
        Published(name, f"google/{name}", *shape, 50358, True, "big_bird")
        for name, shape in (
            ("bigbird-roberta-base", BASE),
            ("bigbird-roberta-large", LARGE),
            ("bigbird-base-trivia-itc", BASE),
        )
    ),
    # Yang et al. 2019.
    Published("xlnet-base-cased", "xlnet/xlnet-base-cased", *BASE, 32000, True, "xlnet"),
    Published("xlnet-large-cased", "xlnet/xlnet-large-cased", *LARGE, 32000, True, "xlnet"),
    # He et al. 2021, versions 1, 2 and 3; the files also hold heads of pre-training.
    *(
        Published(name, f"microsoft/{name}", *shape, 50265, True, "deberta")
        for name, shape in (
            ("deberta-base", BASE),
            ("deberta-large", LARGE),
            ("deberta-xlarge", (48, 1024, 16)),
        )
    ),
    *(
        Published(name, f"microsoft/{name}", *shape, words, True, "deberta-v2")
        for name, shape, words in (
            ("deberta-v2-xlarge", (24, 1536, 24), 128100),
            ("deberta-v2-xxlarge", (48, 1536, 24), 128100),
            ("deberta-v3-xsmall", (12, 384, 6), 128100),
            ("deberta-v3-small", HALF, 128100),
            ("deberta-v3-base", BASE, 128100),
            ("deberta-v3-large", LARGE, 128100),
            ("mdeberta-v3-base", BASE, 251000),
        )
    ),
    # Warner et al. 2024, and Weller et al. 2025 for Ettin; names from memory.
    Published("modernbert-base", "answerdotai/ModernBERT-base", 22, 768, 12, 50368, True, "modernbert"),
    Published("modernbert-large", "answerdotai/ModernBERT-large", 28, 1024, 16, 50368, True, "modernbert"),
    *(
        Published(f"ettin-{size}", f"jhu-clsp/ettin-encoder-{size}", *shape, 50368, True, "modernbert")
        for size, shape in (
            ("17m", (7, 256, 4)),
            ("32m", (10, 384, 6)),
            ("68m", (19, 512, 8)),
            ("150m", (22, 768, 12)),
            ("400m", (28, 1024, 16)),
            ("1b", (28, 1792, 28)),
        )
    ),
    # Marone et al. 2025.
    Published("mmbert-small", "jhu-clsp/mmBERT-small", 22, 384, 6, 256000, True, "modernbert"),
    Published("mmbert-base", "jhu-clsp/mmBERT-base", 22, 768, 12, 256000, True, "modernbert"),
    # Sun et al. 2019, converted from Baidu's format by another; sizes and name from memory.
    Published("ernie-1.0-base-zh", "nghuyong/ernie-1.0-base-zh", *BASE, 18000, False, "ernie"),
)


def local_directory(path):
    """The directory of a checkpoint, which is fetched from the Hugging Face hub if it is not a local one.

    Args:
        path: a directory, of a checkpoint or of a run that trained one; "hf://owner/name"; or a short name of
            `PUBLISHED`, of which small_english lies in the package. A directory of that name, from where the process
            runs, is taken before the published checkpoint.

    `huggingface_hub` caches what it fetches; its environment variables HF_HOME, HF_HUB_OFFLINE, HF_ENDPOINT and
    HF_TOKEN apply.

    Returns: pathlib.Path.
    Raises: ValueError if there is no such directory or name, or the hub cannot be reached, naming what was tried.
    """
    by_name = {published.name: published.repository for published in PUBLISHED}
    if str(path).startswith(SCHEME):
        return _fetch(str(path).removeprefix(SCHEME))
    if pathlib.Path(path).is_dir():
        return _of_run(pathlib.Path(path))
    if is_packaged(path):
        return PACKAGED_DIRECTORY
    if str(path) in by_name:
        return _fetch(by_name[str(path)])
    raise ValueError(
        f"{path} is neither a directory nor a published name (BertEncoder.list_pretrained() prints them; {PACKAGED} is "
        f"in the package); for another checkpoint of the Hugging Face hub write {SCHEME}owner/name."
        f"{did_you_mean(path, by_name)}"
    )


def is_packaged(path):
    """Whether `from_pretrained` takes this for the name of the model in the package."""
    return str(path) == PACKAGED and not pathlib.Path(path).is_dir()


def published_repository(path):
    """The "owner/name" on the hub of what `from_pretrained` takes; None for a local directory and for the model in the
    package."""
    if str(path).startswith(SCHEME):
        return str(path).removeprefix(SCHEME)
    by_name = {published.name: published.repository for published in PUBLISHED}
    return None if pathlib.Path(path).is_dir() else by_name.get(str(path))


def _of_run(directory):
    """The checkpoint within the directory of a run of `finetune` ("model") or `pretrain` ("encoder")."""
    within = [directory, directory / "model", directory / "encoder"]
    return next((path for path in within if (path / "config.json").is_file()), directory)


def in_one_line(error):
    """The message of an error without its line breaks."""
    return " ".join(str(error).split())


def _fetch(repository):
    try:
        for weights in WEIGHTS:
            found = huggingface_hub.snapshot_download(repository, allow_patterns=[*SMALL_FILES, *weights])
            if any(path for pattern in weights for path in pathlib.Path(found).glob(pattern)):
                return pathlib.Path(found)
    except (OSError, ValueError) as error:
        # The errors of huggingface_hub for a missing repository and a missing network are OSErrors or ValueErrors.
        endpoint = huggingface_hub.constants.ENDPOINT
        raise ValueError(
            f"{repository} could not be fetched from {endpoint}, and is not in the local cache: {in_one_line(error)} "
            "Give the path of a directory, or set HF_ENDPOINT, HF_TOKEN or HF_HOME."
        ) from None  # a hundred lines of HTTP libraries would hide the message
    raise ValueError(f"{repository} has no weights that can be read: neither safetensors nor pytorch_model.bin.")


def published_table():
    """The table of published names, as text."""
    lines = [f"{'name':<40}{'layers':>7}{'width':>7}{'parameters':>15}  case"]
    for published in PUBLISHED:
        case = "cased" if published.cased else "uncased"
        lines.append(
            f"{published.name:<40}{published.num_layers:>7}{published.hidden_size:>7}"
            f"{published.num_parameters:>15,}  {case}"
        )
    return "\n".join(lines)
