"""The files beside an exported model: what describes it, tokenizes for it and shows how to run it."""

from keras_bert_impl import startup
from keras_bert_impl.checkpoints import huggingface
from keras_bert_impl.export import example_programs, row_graphs
from keras_bert_impl.export.row_graphs import kind_of
from keras_bert_impl.json_files import write_json
from keras_bert_impl.text.tokenizers.tokenizer_json_writer import write_portable_file

STRIDE = 128  # tokens that two windows over a long context have in common


def write(model, tokenizer, sequence_length, target, format_name, precision="float32", figures=None, **facts):
    """Writes to the directory `target`:

    config.json: Hugging Face's configuration of the model, with the names of its classes, and the field `export`:
        library and its version, kind of model, format, precision, longest row, what is done with longer texts if they
        are not cut, axes of the inputs, figures, and facts.
    tokenizer.json: with it, the `tokenizers` library alone gives the ids; see `tokenizer_json_writer`.
    example.py: a program that runs the model with its runtime alone.
    """
    takes_strings = format_name == "saved_model"
    export = {
        "library": f"keras_bert_impl {startup.VERSION}",
        "model": kind_of(model).__name__,
        "format": format_name,
        "precision": precision,
        "sequence_length": sequence_length,
        **({"long_texts": model.long_texts} if getattr(model, "long_texts", "cut") != "cut" else {}),
        **({"normalize": model.normalize} if hasattr(model, "normalize") else {}),
        **({} if takes_strings else {"inputs": row_graphs.arrays_of(model)}),
        **facts,
        "figures": figures,
    }
    write_json(target / "config.json", {**huggingface.config_of(model), "export": export})
    write_portable_file(
        tokenizer,
        target / "tokenizer.json",
        sequence_length,
        masks=model.asked.task == "fill_mask",
        stride=min(STRIDE, sequence_length // 4) if model.asked.task == "answer" else None,
    )
    program = example_programs.program(model.asked, format_name, precision, tokenizer.mask_texts[0])
    (target / "example.py").write_text(program, encoding="utf-8")
