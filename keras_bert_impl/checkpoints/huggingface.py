"""Checkpoint directories in Hugging Face's layout: config.json, model.safetensors, and the files of a tokenizer.

For each family, one table maps our weights to their tensors; it is applied in one direction to load and in the other
to save. Nothing in a checkpoint is executed.
"""

import functools
import json
import pathlib
import re

import ml_dtypes
import numpy as np
import safetensors.numpy

from keras_bert_impl.checkpoints import completeness, model_card, sentence_transformers, tensor_tables
from keras_bert_impl.checkpoints.atomic_directory import replaced_together
from keras_bert_impl.checkpoints.safetensors_file import open_safetensors
from keras_bert_impl.checkpoints.torch_pickle import open_torch_file
from keras_bert_impl.checkpoints.untrained_heads import untrained_heads
from keras_bert_impl.configurations.known_families import families_by_model_type, family_of
from keras_bert_impl.distribution import is_chief
from keras_bert_impl.json_files import read_json, read_json_if_there
from keras_bert_impl.text.tokenizers import VOCABULARY_FILES, kind_in
from keras_bert_impl.user_warnings import warn_user

MULTI_LABEL = "multi_label_classification"  # the value of problem_type for a sigmoid for each class
FORM = "Hugging Face's format"
# What programs put before the names of tensors: DistributedDataParallel, torch.compile, sentence-transformers, and
# modules of a user's own. In ModernBERT "model." is the encoder.
WRAPPERS = r"\A(?:module\.|_orig_mod\.|0\.auto_model\.|model\.{})+"
IN_MODEL = r"(?=(?:model|head|lm_head|decoder|classifier)\.)"
# Published families that this library does not have, and what it opens for the same purpose.
INSTEAD = {
    **dict.fromkeys(("rembert", "xlm-roberta-xl", "xlm", "canine"), "xlm-roberta-base or xlm-roberta-large"),
    **dict.fromkeys(
        ("mobilebert", "squeezebert"), "hf://sentence-transformers/all-MiniLM-L6-v2 or distilbert-base-uncased"
    ),
    **dict.fromkeys(("convbert", "funnel"), "electra-small-discriminator or electra-base-discriminator"),
    "jina_embeddings_v3": "nomic-embed-text-v1.5, gte-multilingual-base or hf://BAAI/bge-m3",
    "nystromformer": "bigbird-roberta-base",
    "roformer": "modernbert-base",
}
DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}
# Tasks whose `classifier` scores named classes.
CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification")
# A new file on the left replaces the old ones on the right, which another library would read first or instead.
SUPERSEDED = {
    "model.safetensors": ("model-*.safetensors", "model.safetensors.index.json", "pytorch_model*"),
    "tokenizer_config.json": (*VOCABULARY_FILES, "added_tokens.json", "special_tokens_map.json"),
}


def table(config):
    """Rows (path of our weight, names of their tensors, Transform) for every weight that a model can have."""
    return family_of(config).rows(config)


def save(model, directory, tokenizer=None, dtype="float32"):
    """Writes `model` to `directory` as a checkpoint of Hugging Face transformers, one for vectors of texts also as one
    of sentence-transformers.

    Args:
        model: an encoder or one of the models over it.
        directory: created if missing. The checkpoint's files are replaced together, after all are written; others stay,
            but those by which sentence-transformers would open a model that was there before are removed, and a
            warning names them if the new model has no such files. README.md is the `model_card`, unless there is one
            that somebody else has written.
        tokenizer: is saved, too; default is the model's, if it has one.
        dtype: a key of DTYPES. Numbers in bfloat16 are rounded to the nearest, and take half of the space; a program
            that reads them computes in float32 as before, ours and, because config.json says so, transformers.

    Raises: ValueError naming the weights or settings that would be lost, such as LoRA updates that are not merged.
    """
    tokenizer = tokenizer or getattr(model, "tokenizer", None)
    encoder = getattr(model, "encoder", model)
    family, task, rows = family_of(encoder.config), task_of(model), table(encoder.config)
    rows = [*rows, *sentence_transformers.dense_tables(len(getattr(model, "dense", None) or ()))]
    completeness.check_weights(model, rows, FORM)
    if task not in family.tasks:
        warn_user(
            f"transformers has no {family.class_name(task)}: it opens only the encoder of {directory}. This library "
            "opens the whole model."
        )
    # Tensors of a model without a head have no prefix; BERT's always has a pooler, even if ours does not use it.
    dense = [weight for weight in model.weights if weight.path.startswith("dense_")]  # of a TextEmbedder
    prefix, weights = ("", [*encoder.weights, *dense]) if task == "Model" else (family.prefix, model.weights)
    if task in family.tasks_with_pooler:
        weights = [*weights, *(weight for weight in encoder.weights if weight.path.startswith("pooler/"))]
    tensors = {
        (prefix + name.removeprefix(family.prefix) if name.startswith(family.prefix) else name): array
        for name, array in tensor_tables.tensors(weights, rows).items()
    }
    renamed = family.names_by_task.get(task, ())
    tensors = {_with_beginning(name, renamed): array for name, array in tensors.items()}
    untrained = untrained_heads(model, weights)
    if not is_chief():
        return  # all processes have given their parts of the weights; only the first one writes
    tensors = {name: array.astype(DTYPES[dtype], copy=False) for name, array in tensors.items()}
    # A field of our own, for the card, and for whoever opens the checkpoint.
    config = {**config_of(model), **({"untrained": untrained} if untrained else {})}
    if dtype != "float32":
        config["dtype"] = "float32"  # transformers would compute in the type of the file
    left = _of_another_kind(model, directory)
    with replaced_together(directory, _superseded) as target:
        for folder in sorted({name.split("/")[0] for name in tensors if "/" in name}):  # of sentence-transformers
            (target / folder).mkdir()
            own = {name: tensors.pop(name) for name in sorted(tensors) if name.startswith(f"{folder}/")}
            own = {name.removeprefix(f"{folder}/"): array for name, array in own.items()}
            safetensors.numpy.save_file(own, target / folder / "model.safetensors", metadata={"format": "pt"})
        safetensors.numpy.save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
        (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        write_beside(model, target, tokenizer, getattr(model, "sequence_length", encoder.config.max_length))
        completeness.check_settings(model, tokenizer, lambda: open_checkpoint(target), FORM)
        model_card.write(open_checkpoint(target), tokenizer, target, directory)
    if left:
        warn_user(
            f"{directory} contained a sentence-transformers model, but a {type(model).__name__} is not one. Its files "
            f"were removed: {', '.join(left)}."
        )


def write_beside(model, directory, tokenizer, sequence_length):
    """Writes what a checkpoint has beside config.json and weights: the files of the tokenizer, if there is one, and
    those of sentence-transformers."""
    if hasattr(model, "pooling"):
        sentence_transformers.write(model, directory)
    if tokenizer is not None:
        tokenizer.save_pretrained(directory, sequence_length)


def config_of(model):
    """The content of config.json for a model: its architecture, its encoder's configuration, and its head."""
    config = getattr(model, "encoder", model).config
    return {
        "architectures": [family_of(config).class_name(task_of(model))],
        **config.to_huggingface(),
        **_head_config(model, family_of(config)),
    }


def task_of(model):
    """The counterpart of a model in transformers: the end of its class name there. Raises ValueError if it has none."""
    task = getattr(model, "counterpart", None)
    if task is None:
        raise ValueError(
            f"A {type(model).__name__} has no counterpart in transformers, so it cannot be saved in that format: save "
            "its encoder, or keep everything with model.save('model.keras')."
        )
    return task


def open_checkpoint(directory):
    """Opens a checkpoint directory; see `tensor_tables.Checkpoint`.

    Raises: ValueError if a file is missing or damaged, or weights, configuration and vocabulary do not agree, naming
        file and tensor with both shapes.
    """
    directory = pathlib.Path(directory)
    if (directory / "adapter_config.json").is_file():  # which transformers follows, whatever else is there
        raise ValueError(
            f"{directory / 'adapter_config.json'}: peft adapters are not supported. Merge the adapter with peft's "
            "merge_and_unload(), and save the model to another directory."
        )
    path = directory / "config.json"
    if not path.is_file():
        raise ValueError(f"{path} not found: a checkpoint directory holds config.json and model.safetensors.")
    content = read_json(path)
    architecture = next(iter(content.get("architectures") or []), None)
    model_type = content.get("model_type", "bert")
    known = families_by_model_type()
    # The first files of BERT have none; those of other families can have the same tensors.
    is_bert = "model_type" in content or architecture is None or str(architecture).startswith("Bert")
    if not is_bert or model_type not in known:
        found, names = content.get("model_type"), ", ".join(known)
        instead = f" Similar models are {INSTEAD[found]}." if found in INSTEAD else ""
        raise ValueError(
            f"{path}: model_type {found!r} of {architecture} is not supported. Supported are {names}.{instead}"
        )
    family = known[model_type]
    config = family.config_class.from_content(path, content)
    source, dense = open_source(directory, config), sentence_transformers.dense_folders(directory)
    source = _with_dense(source, dense)
    block = re.compile(re.escape(family.block).replace(r"\{\}", r"(\d+)"))
    blocks = {found.groups() for found in map(block.match, source.shapes) if found}
    tensor_tables.check_depth(source, config, blocks, "config.json")
    read_tokenizer = functools.partial(_read_tokenizer, directory, config, source)
    stored = {
        "dropout_rate": content.get(family.dropout_key),
        "token_dropout_rate": content.get(family.token_dropout_key or family.dropout_key),
        "multi_label": content.get("problem_type") == MULTI_LABEL or None,
        "null_threshold": content.get("null_threshold"),
        "long_texts": content.get("long_texts"),
        "truncate_dim": content.get("truncate_dim"),
    }
    found = tensor_tables.Checkpoint(
        config,
        [*table(config), *sentence_transformers.dense_tables(len(dense))],
        source,
        read_tokenizer,
        sequence_length(directory, config),
        _class_names_for(content, source.shapes, tensor_tables.task_in(architecture, config)),
        architecture,
        {name: value for name, value in stored.items() if value is not None},
        functools.partial(_read_pooling, directory, content, config, read_tokenizer),
        functools.partial(sentence_transformers.read_ranking, directory, content, config),
        tuple(content.get("untrained", ())),
    )
    tensor_tables.check_encoder(found, "config.json")
    return found


def _class_names_for(content, shapes, task):
    """The class names of a classifier in order; None if the checkpoint has no classifier or is a regressor."""
    if "classifier.weight" not in shapes or task not in (*CLASSIFIERS, None):
        return None
    num_classes = shapes["classifier.weight"][0]
    kind = content.get("problem_type")
    # transformers treats a sequence classifier with one column as a regressor, unless problem_type says otherwise.
    if kind == "regression" or (kind is None and num_classes == 1 and task != CLASSIFIERS[1]):
        return None
    return class_names_in(content, num_classes)


def class_names_in(content, num_classes):
    """The names of the classes in a configuration, in order; a class without a name gets its number."""
    labels = content.get("id2label")
    labels = labels if isinstance(labels, dict) else {}
    return [str(labels.get(str(index), index)) for index in range(num_classes)]


def _read_pooling(directory, content, config, read_tokenizer):
    """The arguments of a TextEmbedder that the checkpoint specifies; see `tensor_tables.Checkpoint`."""
    if (directory / sentence_transformers.MODULES).is_file():
        return sentence_transformers.read(directory, config, read_tokenizer)
    return {name: content[name] for name in ("pooling", "normalize") if content.get(name) is not None}


def _read_tokenizer(directory, config, source):
    """The tokenizer of a directory; None without a vocabulary. Raises ValueError if it does not fit the embedding."""
    try:
        kind = kind_in(directory)
        if kind is None:
            return None
        tokenizer = kind.from_pretrained(directory)
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(f"{directory}: the vocabulary cannot be read, {type(error).__name__}: {error}.") from error
    tensor_tables.check_tokenizer_rows(tokenizer, config, source)
    _warn_of_segments(tokenizer, config, directory / "tokenizer_config.json")
    return tokenizer


def _warn_of_segments(tokenizer, config, path):
    """Warns if transformers computes a checkpoint without the segments that rows of texts have here."""
    content, template = read_json_if_there(path), tokenizer.template
    inputs, reason = content.get("model_input_names"), "model_input_names has no token_type_ids"
    if inputs is None and str(content.get("tokenizer_class")).startswith("DistilBert"):
        inputs, reason = [], f"tokenizer_class is {content['tokenizer_class']}"
    reads_segments = getattr(config, "num_segments", 1) > 1 or config.model_type == "xlnet"
    if reads_segments and template.second_segment and isinstance(inputs, list) and "token_type_ids" not in inputs:
        cls = tokenizer.vocabulary[tokenizer.cls_id]
        of_cls = f", and {cls} {template.cls_segment}" if template.cls_segment else ""
        warn_user(
            f"{path}: {reason}, so that transformers gives every token the segment 0. Here the second text of a pair "
            f"has the segment {template.second_segment}{of_cls}: if the model was trained without segments, pass rows "
            "of ids whose segment_ids are 0."
        )


def sequence_length(directory, config):
    """The number of tokens that tokenizer_config.json cuts texts to; None if it has none that the model accepts."""
    path = directory / "tokenizer_config.json"
    content = read_json_if_there(path)
    length = content.get("model_max_length", content.get("max_len"))  # the latter before transformers 3
    # Hugging Face writes a number of thirty digits for "no limit".
    return int(length) if isinstance(length, int | float) and 0 < length <= config.max_length else None


def open_source(directory, config):
    """The tensors of a checkpoint as a `Source`, named as today's transformers names those of a model with a head.

    Reads model.safetensors, its shards by their index, or pytorch_model.bin, in that order.

    Raises: ValueError if none of them exists, or one is damaged or holds a tensor that is not of floats.
    """
    directory = pathlib.Path(directory)
    for name, open_files in (
        ("model.safetensors", lambda path: [open_safetensors(path)]),
        ("model.safetensors.index.json", lambda path: [open_safetensors(shard) for shard in _shards(path)]),
        ("pytorch_model.bin", lambda path: [open_torch_file(path)]),
        ("pytorch_model.bin.index.json", lambda path: [open_torch_file(shard) for shard in _shards(path)]),
    ):
        if (directory / name).is_file():
            return _merge(directory / name, open_files(directory / name), config)
    raise ValueError(
        f"{directory / 'model.safetensors'} not found: a checkpoint directory holds config.json and "
        "model.safetensors, or pytorch_model.bin."
    )


def _with_dense(source, folders):
    """A Source with the tensors of Dense modules in these folders, by the names of `dense_tables`."""
    opened = {}
    for place, folder in enumerate(folders, start=2):
        path, older = folder / "model.safetensors", folder / "pytorch_model.bin"
        if not (path.is_file() or older.is_file()):
            continue  # who needs the encoder alone does not need them
        one = open_safetensors(path) if path.is_file() else open_torch_file(older)
        opened |= {f"{place}_Dense/{name}": (one, name) for name in one.shapes}
    shapes = {name: one.shapes[stored] for name, (one, stored) in opened.items()}
    kinds = {name: one.kinds[stored] for name, (one, stored) in opened.items() if stored in one.kinds}

    def read(name):
        one, stored = opened.get(name, (source, name))
        return one.read(stored)

    return source._replace(shapes={**source.shapes, **shapes}, kinds={**source.kinds, **kinds}, read=read)


def standard_name(name, family):
    """Their tensor name with prefix and LayerNorm spelling as in today's models with a head, and as in the rows."""
    name = re.sub(WRAPPERS.format(IN_MODEL if family.prefix == "model." else ""), "", name)
    for renamed in family.names_by_task.values():
        name = _with_beginning(name, [(theirs, ours) for ours, theirs in renamed])
    name = _with_beginning(name, [(other, family.prefix) for other in family.other_prefixes])
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    return f"{family.prefix}{name}" if name.startswith(family.bare_beginnings) else name


def _is_of_a_task(name, family):
    """Whether the models for some task alone name a tensor so."""
    return any(name.startswith(theirs) for pairs in family.names_by_task.values() for _, theirs in pairs)


def _with_beginning(name, pairs):
    """The name with its beginning replaced, if it is the first in one of the pairs."""
    return next((new + name.removeprefix(old) for old, new in pairs if name.startswith(old)), name)


def _merge(path, sources, config):
    """Several files as one Source of standard names; `path` is the file that messages name."""
    shapes, kinds, readers, family = {}, {}, {}, family_of(config)
    # transformers ties what it has read.
    redundant = set(family.redundant) - set(() if config.tie_word_embeddings else family.decoder)
    for source in sources:
        for stored, shape in source.shapes.items():
            name = standard_name(stored, family)
            # A pooler that a text classifier has besides its own dense layer was never trained.
            is_hidden = name in shapes and not _is_of_a_task(stored, family)
            if name not in redundant and not is_hidden:
                shapes[name], kinds[name], readers[name] = shape, source.kinds[stored], (source.read, stored)
    # Of the heads alone: nobody has compared yet how many blocks a configuration asks for with those that are there.
    heads = family.rows_of_heads(config)
    own, *others = next((names for path, names, _ in heads if path == "masked_lm_head/output_bias"), (None,))
    for name in others:  # which transformers 4 leaves out
        if own in shapes and name not in shapes:
            shapes[name], kinds[name], readers[name] = shapes[own], kinds[own], readers[own]

    def read(name):
        read_from, stored = readers[name]
        return read_from(stored)

    return tensor_tables.Source(str(path), shapes, read, kinds)


def _shards(index):
    """The paths of the files that an index.json names. Raises ValueError if one is missing or lies elsewhere."""
    names = sorted(set(read_json(index)["weight_map"].values()))
    for name in names:
        # An index is untrusted input: it must not lead out of its directory.
        if pathlib.PurePath(name).name != name or not (index.parent / name).is_file():
            raise ValueError(f"{index} names the shard {name!r}, which is not in the same folder.")
    return [index.parent / name for name in names]


def _head_config(model, family):
    """The fields of config.json that describe a model's head."""
    names, fields = getattr(model, "class_names", None), {}
    if task_of(model) == CLASSIFIERS[0] and names is None:
        names, fields["problem_type"] = ["LABEL_0"], "regression"
    elif getattr(model, "multi_label", False):
        fields["problem_type"] = MULTI_LABEL
    if getattr(model, "pooling", None) == "last_four":
        # sentence-transformers does not have this way of pooling; the others are stored in its own files.
        fields |= {"pooling": model.pooling, "normalize": model.normalize}
    if getattr(model, "long_texts", "cut") != "cut":
        fields["long_texts"] = model.long_texts  # a field of our own
    if getattr(model, "truncate_dim", None) is not None:
        fields["truncate_dim"] = model.truncate_dim  # a field of our own
    if getattr(model, "null_threshold", None) is not None:
        fields["null_threshold"] = float(model.null_threshold)  # a field of our own
    if hasattr(model, "score_activation"):
        fields |= sentence_transformers.ranking_fields(model.score_activation)
    if hasattr(model, "dropout_rate"):
        key = (model.scores_tokens and family.token_dropout_key) or family.dropout_key
        fields[key] = model.dropout_rate
    if names is not None:
        fields["id2label"] = {str(index): name for index, name in enumerate(names)}
        fields["label2id"] = {name: index for index, name in enumerate(names)}
    return fields


def _of_another_kind(model, directory):
    """The files of sentence-transformers in a directory that describe another kind of model than this one."""
    if hasattr(model, "pooling"):
        return []
    # Of a Reranker config.json tells all, but another library may have written more.
    same = sentence_transformers.OF_RANKING if hasattr(model, "score_activation") else ()
    patterns = [pattern for pattern in sentence_transformers.FILES if pattern not in same]
    directory = pathlib.Path(directory)
    return [path.relative_to(directory).as_posix() for pattern in patterns for path in sorted(directory.glob(pattern))]


def _superseded(new):
    """Patterns of the old files that the new ones replace: another library would read them first, or besides."""
    of_weights = [pattern for name, patterns in SUPERSEDED.items() if name in new for pattern in patterns]
    return [*sentence_transformers.FILES, *of_weights]
