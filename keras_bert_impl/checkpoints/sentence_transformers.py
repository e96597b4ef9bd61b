"""The files that sentence-transformers adds to Hugging Face's: they specify how a text becomes one vector, or how the
logit of a pair of texts becomes a score.

modules.json lists the steps in order. A TextEmbedder computes Transformer, Pooling, any number of Dense, and Normalize;
any other step, and any setting that would give other vectors, is refused by name. The files and their keys are those of
the library's versions 2 to 6: one flag for each way of pooling, or since version 6 a list of their names.
"""

import json

from keras_bert_impl.configurations.family import dense_rows
from keras_bert_impl.json_files import read_json_if_there
from keras_bert_impl.suggestions import one_of

MODULES, POOLING_CONFIG, MODEL_CONFIG = "modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"
# Of older versions, the name depends on the family; the library reads the first of them that there is.
TRANSFORMER_CONFIGS = tuple(
    f"sentence_{family}_config.json"
    for family in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
OF_RANKING = (MODULES, *TRANSFORMER_CONFIGS, MODEL_CONFIG)  # what a CrossEncoder has beside config.json
# Patterns of all files of this library, those in the folders of modules included, such as 1_Pooling and 2_Dense.
FILES = (*OF_RANKING, *(f"[0-9]_[A-Z]*/{name}" for name in ("config.json", "model.safetensors", "pytorch_model.bin")))
# Their flags, in the order in which their vectors are joined, and the names of these ways of pooling, theirs and ours.
FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# What makes scores of a CrossEncoder's logits, in its words and ours.
ACTIVATIONS = {"torch.nn.modules.activation.Sigmoid": "sigmoid", "torch.nn.modules.linear.Identity": "linear"}
# Those of a module Dense, in its words and ours.
DENSE_ACTIVATIONS = {
    **{f"torch.nn.modules.activation.{name}": name.lower() for name in ("Tanh", "ReLU", "Sigmoid", "GELU", "SiLU")},
    "torch.nn.modules.linear.Identity": "linear",
}
# Settings of each file, with the values for which a TextEmbedder computes the same vectors; None allows any value.
TRANSFORMER_SETTINGS = {
    "max_seq_length": None,
    "do_lower_case": None,
    "unpad_inputs": None,
    "transformer_task": ("feature-extraction",),
    "modality_config": ({"text": {"method": "forward", "method_output_name": "last_hidden_state"}},),
    "module_output_name": ("token_embeddings",),
    "processing_kwargs": ({},),
}
POOLING_SETTINGS = {
    **dict.fromkeys(FLAGS),
    "pooling_mode": None,
    "word_embedding_dimension": None,
    "embedding_dimension": None,
    "include_prompt": (True,),
}
KNOWN_LAST = ("Pooling", "Dense", "Normalize")
NORMALIZE_SETTINGS = {
    "module_input_name": ("sentence_embedding",),
    "module_output_name": ("sentence_embedding",),
}
DENSE_SETTINGS = {
    **NORMALIZE_SETTINGS,
    **dict.fromkeys(("in_features", "out_features", "bias")),
    "activation_function": tuple(DENSE_ACTIVATIONS),
}
MODEL_SETTINGS = {
    "__version__": None,
    "model_type": ("SentenceTransformer",),
    "prompts": None,
    "similarity_fn_name": ("cosine", "dot"),
}


def read(directory, config, tokenizer):
    """The arguments of a TextEmbedder that a directory with modules.json specifies.

    Args:
        directory: of the checkpoint.
        config: its configuration.
        tokenizer: function that returns its tokenizer, or None.

    Returns: dict of pooling, normalize and, if they are specified, sequence_length, prompts, similarity_function and
        dense.
    Raises: ValueError naming the file and the module or setting that a TextEmbedder does not have.
    """
    paths = _read_modules(directory / MODULES)
    transformer = _transformer_config(directory / paths["Transformer"])
    settings = _checked(transformer, TRANSFORMER_SETTINGS)
    if settings.get("do_lower_case") and tokenizer() is not None and not tokenizer().lowercase:
        _refuse(transformer, "do_lower_case is true for a cased vocabulary")
    of_model = _checked(directory / MODEL_CONFIG, MODEL_SETTINGS)
    prompts, similarity = of_model.get("prompts") or {}, of_model.get("similarity_fn_name")
    found = {"pooling": _pooling(directory / paths["Pooling"] / "config.json"), "normalize": "Normalize" in paths}
    if "Normalize" in paths:
        _checked(directory / paths["Normalize"] / "config.json", NORMALIZE_SETTINGS)
    found |= ({"prompts": prompts} if prompts else {}) | ({"similarity_function": similarity} if similarity else {})
    for folder in paths["Dense"]:
        if not any((directory / folder / name).is_file() for name in ("model.safetensors", "pytorch_model.bin")):
            _refuse(directory / folder / "model.safetensors", "the file is missing")
    dense = [_checked(directory / folder / "config.json", DENSE_SETTINGS) for folder in paths["Dense"]]
    dense = [
        {
            "activation": DENSE_ACTIVATIONS[one.get("activation_function", "torch.nn.modules.activation.Tanh")],
            "use_bias": bool(one.get("bias", True)),
            "units": one["out_features"],
        }
        for one in dense
    ]
    return found | ({"dense": dense} if dense else {}) | _length_in(settings, config)


def dense_folders(directory):
    """The folders of the Dense modules of a directory, which hold their weights; none if it is no sentence-transformer
    that a TextEmbedder can be."""
    try:
        return [directory / folder for folder in _read_modules(directory / MODULES)["Dense"]]
    except (ValueError, OSError):
        return []


def dense_tables(count):
    """The rows of as many Dense modules, as those of a Family; their tensors are named after their folders."""
    return [row for n in range(1, count + 1) for row in dense_rows(f"dense_{n}", f"{n + 1}_Dense/linear")]


def read_ranking(directory, content, config):
    """The arguments of a Reranker that the directory of a CrossEncoder specifies.

    Args:
        directory: of the checkpoint.
        content: of its config.json, where the library's versions 2 to 5 have the activation.
        config: its configuration.

    Returns: dict of score_activation and sequence_length, if they are specified.
    Raises: ValueError naming the file and the setting that a Reranker does not have.
    """
    path, found = directory / MODEL_CONFIG, {}
    settings = read_json_if_there(path)
    older = content.get("sentence_transformers")
    older = older if isinstance(older, dict) else {}
    for source, name in (
        (path, settings.get("activation_fn")),
        (directory / "config.json", older.get("activation_fn")),
        (directory / "config.json", content.get("sbert_ce_default_activation_function")),
    ):
        if name is not None and "score_activation" not in found:
            if not isinstance(name, str) or name not in ACTIVATIONS:
                _refuse_ranking(source, f"the activation is {name!r:.80}")
            found["score_activation"] = ACTIVATIONS[name]
    if not (directory / MODULES).is_file():
        return found
    kinds = [kind.rsplit(".", 1)[-1] for kind, _, _ in _steps(directory / MODULES)]
    if kinds[1:2] == ["Pooling"]:  # an embedder, whose encoder gets a new head
        return found
    if kinds[1:]:
        _refuse_ranking(directory / MODULES, f"the modules are {', '.join(kinds)}")
    if settings.get("default_prompt_name") is not None:
        _refuse_ranking(path, f"default_prompt_name is {settings['default_prompt_name']!r:.80}")
    transformer = _transformer_config(directory)
    settings = read_json_if_there(transformer)
    return found | _length_in(settings, config)


def _transformer_config(folder):
    """The path of the settings of a module Transformer, which need not exist."""
    paths = [folder / name for name in TRANSFORMER_CONFIGS]
    return next((path for path in paths if path.is_file()), paths[0])


def _length_in(settings, config):
    """The argument sequence_length that the settings of a file give, if they do."""
    length = settings.get("max_seq_length")
    if length is None:
        return {}
    return {"sequence_length": min(length, config.max_length)}


def ranking_fields(activation):
    """The fields of config.json by which a CrossEncoder has the activation of a Reranker."""
    name = next(name for name, ours in ACTIVATIONS.items() if ours == activation)
    return {"sentence_transformers": {"activation_fn": name}}


def write(embedder, directory):
    """Writes the files that tell sentence-transformers how a TextEmbedder turns a text into a vector.

    Pooling "last_four" is not written: the library has no such way.
    """
    modes = modes_of(embedder.pooling)
    if "last_four" in modes:
        return
    dense = [(f"{place}_Dense", "Dense") for place in range(2, 2 + len(embedder.dense or ()))]
    steps = [("", "Transformer"), ("1_Pooling", "Pooling"), *dense]
    steps += [(f"{len(steps)}_Normalize", "Normalize")] * embedder.normalize
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (path, kind) in enumerate(steps)
    ]
    width = embedder.encoder.config.hidden_size
    if list(modes) == [mode for mode in FLAGS.values() if mode in modes]:
        pooling = {"word_embedding_dimension": width, **{flag: mode in modes for flag, mode in FLAGS.items()}}
    else:
        pooling = {"embedding_dimension": width, "pooling_mode": list(modes)}  # an order that flags cannot express
    transformer = {"max_seq_length": embedder.sequence_length, "do_lower_case": False}
    (directory / "1_Pooling").mkdir()
    files = {MODULES: modules, POOLING_CONFIG: pooling, TRANSFORMER_CONFIGS[0]: transformer}
    if embedder.prompts or embedder.similarity_function != "cosine":
        settings = {"prompts": embedder.prompts or {}, "default_prompt_name": None}
        files[MODEL_CONFIG] = settings | {"similarity_fn_name": embedder.similarity_function}
    layers = zip(dense, embedder.dense or (), strict=True)
    for number, ((folder, _), layer) in enumerate(layers, start=1):
        theirs = {ours: name for name, ours in DENSE_ACTIVATIONS.items()}
        activation = theirs[one_of("activation", layer["activation"], theirs)]
        sizes = dict(
            zip(("in_features", "out_features"), embedder.get_layer(f"dense_{number}").kernel.shape, strict=True)
        )
        files[f"{folder}/config.json"] = {**sizes, "bias": layer["use_bias"], "activation_function": activation}
        (directory / folder).mkdir(exist_ok=True)
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def modes_of(pooling):
    """One or several ways of pooling as a tuple."""
    return (pooling,) if isinstance(pooling, str) else tuple(pooling)


def _read_modules(path):
    """The folder of each module by its kind. Raises ValueError unless they are those of a TextEmbedder."""
    steps = _steps(path)
    kinds = [kind for kind, _, _ in steps]
    ours = [kind.rsplit(".", 1)[-1] if kind.startswith("sentence_transformers.") else None for kind in kinds]
    if ours[:2] != ["Transformer", "Pooling"] or set(ours[2:-1]) - {"Dense"} or ours[-1] not in KNOWN_LAST:
        _refuse(path, f"the modules are {', '.join(kinds)}")
    for kind, folder, kwargs in steps:
        if kwargs:
            _refuse(path, f"{kind} has kwargs {kwargs!r:.80}")
        # A checkpoint is untrusted input: it must not lead out of its directory.
        if folder == ".." or "/" in folder or "\\" in folder:
            raise ValueError(f"{path}: {kind} has the path {folder!r:.80}, expected a folder next to this file.")
    folders = [folder for _, folder, _ in steps]
    found = {name: folder for name, folder in zip(ours, folders, strict=True) if name != "Dense"}
    return {**found, "Dense": [folder for name, folder in zip(ours, folders, strict=True) if name == "Dense"]}


def _steps(path):
    """Kind, folder and further arguments of each module. Raises ValueError for a damaged file."""
    try:
        return [(str(step["type"]), str(step["path"]), step.get("kwargs")) for step in json.loads(path.read_bytes())]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not a list of modules, each with its type and path.") from error


def _pooling(path):
    """The way of pooling, or a tuple of ways. If none is set, the mean, as in sentence-transformers."""
    settings = _checked(path, POOLING_SETTINGS)
    modes = settings.get("pooling_mode") or [mode for flag, mode in FLAGS.items() if settings.get(flag)] or "mean"
    modes = modes_of(modes)
    for mode in modes:
        if mode not in FLAGS.values():
            _refuse(path, f"pooling_mode is {mode!r}")
    return modes[0] if len(modes) == 1 else modes


def _checked(path, known):
    """The settings of a file, {} if it does not exist. Raises ValueError for a setting that gives other vectors."""
    settings = read_json_if_there(path)
    for name, value in settings.items():
        # A setting that is null, or an unknown one that is off, has no effect.
        if value is None or (value is False and name not in known):
            continue
        if name not in known or (known[name] is not None and value not in known[name]):
            _refuse(path, f"{name} is {value!r:.80}")
    return settings


def _refuse(path, what, model="TextEmbedder", needed="all of pooling, normalize and sequence_length"):
    raise ValueError(
        f"{path}: {what}, which {model} does not support: its outputs would differ from the original model's. To "
        f"use the encoder alone, give {needed}."
    )


def _refuse_ranking(path, what):
    _refuse(path, what, "Reranker", "both score_activation and sequence_length")
