"""One training step of masked LM as the TPU compiler sees it, ours or KerasHub's, on a machine without a TPU.

    python benchmarks/tpu_step.py --side ours --length 512 --rows 16 --layers 2 --groups 12
    python benchmarks/tpu_step.py --side keras_hub --size bert_large --length 128 --rows 64 --topology v6e:2x2
    python benchmarks/tpu_step.py --side keras_hub --size albert_base --length 512 --rows 16 --layers 2
    python benchmarks/tpu_step.py --side gather --size deberta_v3_base --length 512 --rows 8 --layers 2

Any family of ours, and KerasHub's where it has a masked LM of it (benchmarks/keras_hub_models.py). Both train with
AdamW, weight decay, clipping, dropout and mixed_bfloat16, on the same rows with a masked token in 6.7. (KerasHub's GELU
is the tanh form, ours the exact one.) Needs KERAS_BACKEND=jax and libtpu. Two layers compile in half a minute on two
cores and suffice while one works; twelve take minutes.

Prints one line of JSON, of one chip: `gigabytes` that the step moves between chip and memory and its `teraflop`, both
as the compiler counts them; `temporary_gib` and `argument_gib` of memory; `arithmetic_ms` and `memory_ms`, which these
take at the published rates. The compiler counts what every operation reads and writes, also where that stays in the
chip's own memory (128 MiB on v5e): `moved_gigabytes` is what remains without it, read from the program's text (null
where libtpu cannot print it). `--groups` lists the parts of the model that move the most of these bytes.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import time

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")  # one process at a time may use chips; these are not used

GIB = 2**30


def our_model(arguments):
    """Our masked LM, compiled."""
    import keras

    from keras_bert_impl import Pretrainer
    from keras_bert_impl.encoders import build_encoder
    from keras_bert_impl.optimization import BertAdamW

    encoder = build_encoder(config_of(arguments), dtype=keras.dtype_policies.get("mixed_bfloat16"))
    model = Pretrainer(encoder, next_sentence=False)
    model.compile(optimizer=BertAdamW(1e-4, moments=arguments.moments), jit_compile=True)
    return model


def gathering_model(arguments):
    """Ours of a DeBERTa with an index for each product of a distance."""
    import deberta_step
    from keras_bert_impl.encoders import deberta

    deberta.at_distances = deberta_step.by_gather
    return our_model(arguments)


def keras_hub_model(arguments):
    import keras_hub_models

    return keras_hub_models.masked_lm(config_of(arguments), "mixed_bfloat16", True)


SIDES = {"ours": our_model, "keras_hub": keras_hub_model, "gather": gathering_model}


def config_of(arguments):
    from keras_bert_impl.configurations.known_families import config_from_name

    # One vocabulary for all; an MPNet's padding has the id 1.
    config = config_from_name(
        arguments.size, vocabulary_size=arguments.vocabulary_size, pad_id=1 if "mpnet" in arguments.size else 0
    )
    dropout = (0.0 if "modernbert" in arguments.size else 0.1) if arguments.dropout is None else arguments.dropout
    return dataclasses.replace(
        config,
        num_layers=arguments.layers or config.num_layers,
        max_length=max(512, arguments.length),
        hidden_dropout_rate=dropout,
        attention_dropout_rate=dropout,
    )


def batch_of(model, arguments, rows, make):
    """What a side's `train_step` takes, of the arrays that `make(shape, dtype)` returns."""
    from keras_bert_impl.features import usual_predictions

    row, predictions = (rows, arguments.length), (rows, usual_predictions(arguments.length))
    inputs = {name: make(predictions if name == "mask_positions" else row, "int32") for name in model.input}
    ids, weights = make(predictions, "int32"), make(predictions, "float32")
    if arguments.side == "keras_hub":
        return inputs, ids, weights
    return inputs, {"mask_ids": ids, "mask_weights": weights}


def lowered_step(arguments):
    """The `train_step` that `fit` runs on the chips of the topology, lowered from shapes; rows are divided, weights
    are whole on each chip."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from keras_bert_impl.kernels import attention
    from keras_bert_training.commands.plan_tpu import devices_of

    model = SIDES[arguments.side](arguments)
    model.optimizer.build(model.trainable_variables)
    model._symbolic_build(data_batch=batch_of(model, arguments, 2, jax.numpy.zeros))  # makes the metrics
    devices = devices_of(arguments.topology)
    mesh = Mesh(np.array(devices), ("batch",))
    whole, divided = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("batch"))

    def shapes(variables):
        return [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=whole) for each in variables]

    state = (
        shapes(model.trainable_variables),
        shapes(model.non_trainable_variables),
        shapes(model.optimizer.variables),
        shapes(model.metrics_variables),
    )
    data = batch_of(
        model, arguments, arguments.rows * len(devices), lambda *array: jax.ShapeDtypeStruct(*array, sharding=divided)
    )
    stays = jax.tree.map(lambda _: whole, state)
    # Without a TPU, the plain form of attention would be chosen.
    platform = "cpu" if arguments.plain_attention else "tpu"
    with attention.placed(attention.Placement(platform, mesh, "batch", is_here=False)):
        return jax.jit(model.train_step, donate_argnums=0, out_shardings=(None, stays)).lower(state, data)


def figures_of(compiled, arguments):
    """The compiler's figures of one chip, and the times that they take at published rates."""
    from keras_bert_training.commands.plan_tpu import CHIPS

    chip = CHIPS[arguments.topology.split(":")[0]]
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    arithmetic, moving = cost["flops"] / chip.flops, cost["bytes accessed"] / chip.memory_bandwidth
    return {
        "gigabytes": round(cost["bytes accessed"] / 1e9, 2),
        "temporary_gib": round(memory.temp_size_in_bytes / GIB, 3),
        "argument_gib": round(memory.argument_size_in_bytes / GIB, 3),
        "teraflop": round(cost["flops"] / 1e12, 3),
        "arithmetic_ms": round(1000 * arithmetic, 1),
        "memory_ms": round(1000 * moving, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", choices=SIDES, default="ours")
    parser.add_argument("--size", default="bert_base", help="a size of any family, as keras-bert pretrain takes it")
    parser.add_argument("--layers", type=int, help="number of layers; default is the size's")
    parser.add_argument("--length", type=int, default=128, help="tokens in a row")
    parser.add_argument("--rows", type=int, default=64, help="rows a chip")
    parser.add_argument("--topology", default="v5e:2x2", help="as in keras-bert plan-tpu")
    parser.add_argument("--dropout", type=float, help="default is the family's: 0.1, ModernBERT's 0")
    parser.add_argument("--plain_attention", action="store_true", help="ours without the TPU kernel of attention")
    parser.add_argument("--vocabulary_size", type=int, default=30522)
    parser.add_argument("--moments", default="float32", choices=("float32", "bfloat16"), help="of ours, AdamW's")
    parser.add_argument("--groups", type=int, default=0, help="how many parts of the model to list, by bytes moved")
    parser.add_argument("--program", help="file to write the compiled program's text to")
    arguments = parser.parse_args()
    from keras_bert_training.commands.compiled_program import moved_by_group, text_of

    start = time.monotonic()
    compiled = lowered_step(arguments).compile()
    setting = {name: getattr(arguments, name) for name in ("side", "size", "layers", "length", "rows", "topology")}
    program = text_of(compiled)
    moved = moved_by_group(program) if program else None
    figures = figures_of(compiled, arguments) | {
        "moved_gigabytes": moved and round(sum(moved.values()) / 1e9, 2),
        "compile_seconds": round(time.monotonic() - start),
    }
    more = {"dropout": config_of(arguments).hidden_dropout_rate, "plain_attention": arguments.plain_attention}
    print(json.dumps(setting | more | figures), flush=True)
    if arguments.program and program:
        pathlib.Path(arguments.program).write_text(program, encoding="utf-8")
    for group, size in (moved or collections.Counter()).most_common(arguments.groups):
        print(f"{size / 1e9:8.2f} GB  {group}")


if __name__ == "__main__":
    main()
