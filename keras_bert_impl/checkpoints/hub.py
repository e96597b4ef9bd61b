"""The published checkpoints by name, how they are fetched from the Hugging Face hub, and how one is made ready for it
with a model card, and uploaded."""

import pathlib
import shutil
import tempfile
import warnings

import huggingface_hub

from keras_bert_impl.checkpoints import huggingface, model_card, sentence_transformers
from keras_bert_impl.distribution import is_chief
from keras_bert_impl.suggestions import did_you_mean

SCHEME = "hf://"
# The model that lies in the package: a name like the published ones, whose files are here already.
PACKAGED = "small_english"
PACKAGED_DIRECTORY = pathlib.Path(__file__).parent / PACKAGED
# Weights are fetched as safetensors if a repository has them, otherwise as pickles.
SMALL_FILES = ("*.json", "vocab.txt", "merges.txt", "spiece.model", "spm.model", "sentencepiece.bpe.model")
WEIGHTS = (("model*.safetensors",), ("pytorch_model*.bin",))
PUSHED = (*SMALL_FILES, "*.safetensors", "1_Pooling/*", model_card.FILE)


def _of_owner(owner, names):
    return {name: f"{owner}/{name}" for name in names}


# "owner/name" on the hub by its short name; None for the model in the package.
PUBLISHED = {
    PACKAGED: None,
    # Devlin et al. 2019, and https://github.com/google-research/bert for those that came after the paper.
    **_of_owner(
        "google-bert",
        (
            *(f"bert-{size}-{case}" for case in ("uncased", "cased") for size in ("base", "large")),
            *(f"bert-large-{case}-whole-word-masking" for case in ("uncased", "cased")),
            *(f"bert-base-{languages}" for languages in ("multilingual-cased", "multilingual-uncased", "chinese")),
        ),
    ),
    # The 24 miniatures of Turc et al. 2019.
    **_of_owner(
        "google",
        (
            f"bert_uncased_L-{layers}_H-{width}_A-{width // 64}"
            for layers in (2, 4, 6, 8, 10, 12)
            for width in (128, 256, 512, 768)
        ),
    ),
    # Joshi et al. 2020.
    **_of_owner("SpanBERT", ("spanbert-base-cased", "spanbert-large-cased")),
    # Cui et al. 2019, of whom the last two also train as RoBERTa does, but are BERTs.
    **_of_owner("hfl", ("chinese-bert-wwm", "chinese-bert-wwm-ext")),
    **_of_owner("hfl", ("chinese-roberta-wwm-ext", "chinese-roberta-wwm-ext-large")),
    # Sanh et al. 2019, of which the last is a RoBERTa.
    **_of_owner("distilbert", (f"distilbert-base-{case}" for case in ("uncased", "cased", "multilingual-cased"))),
    **_of_owner("distilbert", ("distilroberta-base",)),
    # Clark et al. 2020.
    **_of_owner(
        "google",
        (f"electra-{size}-{role}" for size in ("small", "base", "large") for role in ("discriminator", "generator")),
    ),
    # Liu et al. 2019, and Conneau et al. 2020.
    **_of_owner("FacebookAI", ("roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large")),
    # Lan et al. 2020.
    **_of_owner(
        "albert",
        (f"albert-{size}-{version}" for version in ("v1", "v2") for size in ("base", "large", "xlarge", "xxlarge")),
    ),
    # Song et al. 2020.
    **_of_owner("microsoft", ("mpnet-base",)),
    # Beltagy et al. 2020; the last answers questions.
    **_of_owner("allenai", (f"longformer-{kind}" for kind in ("base-4096", "large-4096"))),
    **_of_owner("allenai", ("longformer-large-4096-finetuned-triviaqa",)),
    # Zaheer et al. 2020; the last answers questions.
    **_of_owner("google", ("bigbird-roberta-base", "bigbird-roberta-large", "bigbird-base-trivia-itc")),
    # Yang et al. 2019.
    **_of_owner("xlnet", ("xlnet-base-cased", "xlnet-large-cased")),
    # He et al. 2021, versions 1, 2 and 3; the files also hold heads of pre-training.
    **_of_owner("microsoft", (f"deberta-{size}" for size in ("base", "large", "xlarge", "v2-xlarge", "v2-xxlarge"))),
    **_of_owner("microsoft", (f"deberta-v3-{size}" for size in ("xsmall", "small", "base", "large"))),
    **_of_owner("microsoft", ("mdeberta-v3-base",)),
    # Warner et al. 2024, Weller et al. 2025 for Ettin, and Marone et al. 2025 for mmBERT; names from memory.
    **{f"modernbert-{size}": f"answerdotai/ModernBERT-{size}" for size in ("base", "large")},
    **{f"ettin-{size}": f"jhu-clsp/ettin-encoder-{size}" for size in ("17m", "32m", "68m", "150m", "400m", "1b")},
    **{f"mmbert-{size}": f"jhu-clsp/mmBERT-{size}" for size in ("small", "base")},
    # Boizard et al. 2025, Nussbaum et al. 2024, Zhang et al. 2024, Martin et al. 2020; names from memory.
    **{f"eurobert-{size.lower()}": f"EuroBERT/EuroBERT-{size}" for size in ("210m", "610m", "2.1B")},
    **_of_owner("nomic-ai", ("nomic-bert-2048", "nomic-embed-text-v1.5")),
    **_of_owner(
        "Alibaba-NLP", ("gte-multilingual-base", "gte-base-en-v1.5", "gte-large-en-v1.5", "gte-modernbert-base")
    ),
    **_of_owner("almanach", ("camembert-base", "camembert-large")),
    # Sun et al. 2019, converted from Baidu's format by another; the name is from memory.
    **_of_owner("nghuyong", ("ernie-1.0-base-zh",)),
}


def local_directory(path):
    """Returns the local directory of a checkpoint, and downloads it from the Hugging Face Hub if necessary.

    `huggingface_hub` caches downloads; its environment variables HF_HOME, HF_HUB_OFFLINE, HF_ENDPOINT and HF_TOKEN
    apply.

    Args:
        path (str or pathlib.Path): the directory of a checkpoint, or of a run that trained one; "hf://owner/name"; or a
            published name. A local directory is preferred to a published name.

    Returns: a pathlib.Path.
    Raises: ValueError if there is no such directory or name, or if the Hub cannot be reached.

    Example:
        >>> kbi.checkpoints.local_directory("small_english").name
        'small_english'
    """
    if str(path).startswith(SCHEME):
        return _fetch(str(path).removeprefix(SCHEME))
    if pathlib.Path(path).is_dir():
        return _of_run(pathlib.Path(path))
    if is_packaged(path):
        return PACKAGED_DIRECTORY
    if str(path) in PUBLISHED:
        return _fetch(PUBLISHED[str(path)])
    raise ValueError(
        f"{path} is neither a directory nor a published name (BertEncoder.list_pretrained() prints them; {PACKAGED} is "
        f"in the package); for another checkpoint of the Hugging Face hub write {SCHEME}owner/name."
        f"{did_you_mean(path, PUBLISHED)}"
    )


def is_packaged(path):
    """Whether `from_pretrained` takes this for the name of the model in the package."""
    return str(path) == PACKAGED and not pathlib.Path(path).is_dir()


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
    """Returns the table of published names and their repositories on the Hub, as text."""
    return "\n".join(f"{name:<41} {repository or '(in the package)'}" for name, repository in PUBLISHED.items())


def write_card(directory, facts=None, place=model_card.HERE):
    """Writes the model card of a checkpoint, README.md, from the checkpoint and from facts.

    Args:
        directory (str or pathlib.Path): a checkpoint in Hugging Face's format.
        facts (CardFacts, optional): facts to add; each replaces the one in an earlier card. Default: None.
        place (str, optional): "owner/name" on the Hub, for the example programs in the card. Default: ".", the
            directory itself.

    Returns: bool, whether a card was written. A README.md that somebody else wrote is kept, and only one of several
        processes writes.
    Raises: ValueError if the directory holds no such checkpoint.

    Example:
        >>> import tempfile
        >>> model = kbi.MaskedLM.from_pretrained("small_english")
        >>> facts = kbi.checkpoints.CardFacts(license="mit", languages=["en"])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save_pretrained(directory)
        ...     kbi.checkpoints.write_card(directory, facts)
        ...     kbi.checkpoints.facts_of(directory).license
        True
        'mit'
    """
    if not is_chief():
        return False
    directory = pathlib.Path(directory)
    checkpoint = huggingface.open_checkpoint(directory)
    facts = model_card.facts_of(directory).with_others(facts or model_card.CardFacts())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a small vocabulary, which `from_pretrained` gives
        tokenizer = checkpoint.tokenizer
    return model_card.write(checkpoint, tokenizer, directory, directory, facts, place)


def origin_of(model):
    """(its "owner/name" on the hub or None, what a card calls it) of what `from_pretrained` takes: nobody else has the
    path of a local checkpoint."""
    name, base = str(model), None
    if name.startswith(SCHEME):
        base = name.removeprefix(SCHEME)
    elif not pathlib.Path(model).is_dir():
        base = PUBLISHED.get(name)
    packaged = f"{model}, the model in keras_bert_impl" if is_packaged(model) else None
    return base, base or packaged or "a checkpoint that is not on the hub"


def push_to_hub(model, repository, facts=None, private=True, message="A checkpoint of keras_bert_impl"):
    """Uploads a model to the Hugging Face Hub, from where `from_pretrained("hf://owner/name")` opens it.

    Files and model card are those of `save_pretrained` and `checkpoints.write_card`. A README.md that somebody else
    wrote is uploaded unchanged. Log in with `hf auth login`, or set the environment variable HF_TOKEN:

        kbi.push_to_hub(model, "your-name/your-model")

    Args:
        model (keras.Model, str or pathlib.Path): a model or encoder; or the directory of a checkpoint in Hugging Face's
            format, of which only the files of the checkpoint and its card are uploaded.
        repository (str): "owner/name"; created if it does not exist.
        facts (CardFacts, optional): facts for the card, added to those of the directory. Default: None.
        private (bool, optional): whether a new repository is private. Default: True.
        message (str, optional): message of the commit. Default: "A checkpoint of keras_bert_impl".

    Returns: the address of the commit, a str.
    Raises: ValueError for a repository without an owner, or a directory without a checkpoint.
    """
    repository = str(repository).removeprefix(SCHEME)
    if repository.count("/") != 1:
        raise ValueError(f"{repository}: expected the repository as owner/name.")
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder)
        if hasattr(model, "save_pretrained"):
            model.save_pretrained(target)
        else:
            directory = local_directory(model)
            huggingface.open_checkpoint(directory)
            # What else lies there, such as the state of a training, stays.
            for path in sorted({path for pattern in PUSHED for path in directory.glob(pattern) if path.is_file()}):
                place = target / path.relative_to(directory)
                place.parent.mkdir(exist_ok=True)
                shutil.copy(path, place)
        write_card(target, facts, repository)
        api = huggingface_hub.HfApi()
        api.create_repo(repository, private=private, exist_ok=True)
        # What an earlier version of the repository has, and this one does not, would be read instead or besides.
        old = [*sentence_transformers.FILES]
        old += [pattern for patterns in huggingface.SUPERSEDED.values() for pattern in patterns]
        commit = api.upload_folder(repo_id=repository, folder_path=target, commit_message=message, delete_patterns=old)
        return commit.commit_url
