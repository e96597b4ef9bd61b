"""What makes a checkpoint one for others: a model card with what was measured, and a place on the Hugging Face hub."""

import pathlib
import shutil
import tempfile
import warnings

import huggingface_hub

from keras_bert_impl.checkpoints import huggingface, model_card, sentence_transformers
from keras_bert_impl.checkpoints.hub import SCHEME, SMALL_FILES, is_packaged, local_directory, published_repository
from keras_bert_impl.distribution import is_chief

PUSHED = (*SMALL_FILES, "*.safetensors", "1_Pooling/*", model_card.FILE)


def write_card(directory, facts=None, place=model_card.HERE):
    """Writes README.md of a checkpoint: what the checkpoint itself knows, and facts, added to those that its card has.
    One process writes.

    Args:
        directory: a checkpoint in Hugging Face's format.
        facts: a `CardFacts`, whose fields take the place of those that the card has; None for none.
        place: "owner/name" on the hub for the programs of the card; default is the directory.

    Returns: whether a card was written: a README.md that somebody else has written stays as it is.
    Raises: ValueError if the directory holds no such checkpoint.
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
    base = published_repository(model)
    packaged = f"{model}, the model in keras_bert_impl" if is_packaged(model) else None
    return base, base or packaged or "a checkpoint that is not on the hub"


def push_to_hub(model, repository, facts=None, private=True, message="A checkpoint of keras_bert_impl"):
    """Uploads a checkpoint to the Hugging Face hub, where `from_pretrained("hf://owner/name")` finds it.

    The programs of its card then fetch the checkpoint from there; a README.md that somebody else has written is
    uploaded as it is. Access is that of `huggingface_hub`: the environment variable HF_TOKEN, or `hf auth login`.

    Args:
        model: a model or an encoder; or the directory of a checkpoint in Hugging Face's format, of which only the files
            of the checkpoint and its card are uploaded.
        repository: "owner/name"; created if it does not exist.
        facts: a `CardFacts`, added to those of the card of the directory; None for none.
        private: whether a new repository can be seen by its owner alone.
        message: of the commit.

    Returns: the address of the commit.
    Raises: ValueError for a name without an owner or a directory without a checkpoint.
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
