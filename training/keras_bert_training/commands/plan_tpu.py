"""Asks the TPU compiler what a recipe needs on TPUs, on a machine without a TPU.

    pip install 'keras_bert_impl[jax,training,tpu-plan]'
    keras-bert plan-tpu --topology v5e:4x4 --recipe bert_large --global_batch 4096
    keras-bert plan-tpu --topology v5e:4x4 --recipe bert_large --search

The training step that `fit` runs on the JAX backend is lowered from shapes alone and compiled by `libtpu` for the chips
of a topology. The compiler reports whether the step fits, the memory and arithmetic of a chip, and what the chips send
each other. From these figures the time of a step and of the recipe is estimated, and marked as an estimate. No chip is
used.

A topology is a TPU generation and the shape of a slice: v4:2x2x2, v5e:4x4, v5p:2x2x2, v6e:4x4. A recipe is a folder or
file of the package's recipes; a folder's phases are planned one by one.
"""

import contextlib
import dataclasses
import math
import pathlib
import re
import time
import types

import jax
import numpy as np
import yaml
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from keras_bert_impl import features
from keras_bert_impl.console import say
from keras_bert_impl.distribution import axes_of_state, axes_of_weight
from keras_bert_impl.distribution.divided_state import DataParallelWithDividedState
from keras_bert_impl.json_files import write_json
from keras_bert_impl.kernels import attention
from keras_bert_training import pretraining_model
from keras_bert_training.commands.compiled_program import collectives, moved_by_group, text_of
from keras_bert_training.options.plan_tpu import PlanConfig as PlanConfig
from keras_bert_training.options.recipes import RECIPES
from keras_bert_training.pretraining import PretrainConfig
from keras_bert_training.pretraining_data import predictions_of

GIB = 2**30
SECONDS_OF_DAY = 86400


@dataclasses.dataclass(frozen=True)
class Chip:
    """Published figures of one chip (cloud.google.com/tpu/docs/v4, v5e, v5p, v6e)."""

    flops: float  # bfloat16, a second
    memory: int  # bytes of HBM
    memory_bandwidth: float  # bytes a second
    link_bandwidth: float  # bytes a second to other chips, all links together


CHIPS = {
    "v4": Chip(275e12, 32 * GIB, 1.2e12, 300e9),
    "v5e": Chip(197e12, 16 * GIB, 0.82e12, 200e9),
    "v5p": Chip(459e12, 95 * GIB, 2.765e12, 600e9),
    "v6e": Chip(918e12, 32 * GIB, 1.64e12, 448e9),
}


def run(config):
    """Plans every phase on every topology; returns a list with a dict of figures for each."""
    found = []
    for name in config.topology.split(","):
        devices = devices_of(name)
        for phase in phases_of(config.recipe):
            found += (search if config.search else plan)(config, name, devices, phase)
    if config.output:
        write_json(config.output, found)
    return found


def phases_of(recipe):
    """The recipe's files as dicts, each with its name."""
    path = pathlib.Path(recipe) if pathlib.Path(recipe).exists() else RECIPES / recipe
    files = sorted(path.glob("phase_*.yaml")) if path.is_dir() else [path.with_suffix(".yaml")]
    # The second phase takes its size from the first one's checkpoint; the folders have the names of the sizes.
    return [
        {"name": f"{file.parent.name}/{file.stem}", "size": file.parent.name, **yaml.safe_load(file.read_text())}
        for file in files
    ]


def devices_of(topology):
    """The devices of a topology, one for each chip."""
    generation = topology.split(":")[0]
    # A v4 chip has two cores, which are used as one.
    more = {"chip_config_name": "megacore"} if generation == "v4" else {}
    return topologies.get_topology_desc(platform="tpu", topology_name=topology, **more).devices


def plan(config, topology, devices, phase):
    """Compiles one phase, and prints and returns its figures."""
    rows = config.global_batch or phase["batch_size"]
    model = planned_model(phase, config)
    figures = compile_step(model, devices, rows, phase, config)
    figures = {"topology": topology, "phase": phase["name"], "chips": len(devices), "rows": rows, **figures}
    print_figures(figures, CHIPS[topology.split(":")[0]], phase)
    return [figures]


def search(config, topology, devices, phase):
    """Finds the largest number of rows that fits on a chip, with and without gradient checkpointing."""
    memory = CHIPS[topology.split(":")[0]].memory
    found = []
    for checkpointing in (False, True):
        config = dataclasses.replace(config, gradient_checkpointing=checkpointing)
        model = planned_model(phase, config)
        replicas = len(devices) // config.model_devices

        def room(rows, model=model, config=config, replicas=replicas):
            figures = compile_step(model, devices, rows * replicas, phase, config)
            left = memory - bytes_of(figures) if figures["fits"] else None
            verdict = f"fit, {left / GIB:.1f} GiB are left" if figures["fits"] else f"do not fit, {figures['needed']}"
            say(f"    {rows} sequences a chip {verdict}; compiling took {figures['compile_seconds']:.0f} s")
            return left

        rows, what = most(room), "with" if checkpointing else "without"
        say(f"  {topology}, {phase['name']}: {rows} sequences a chip {what} gradient checkpointing")
        setting = {"topology": topology, "phase": phase["name"], "checkpointing": checkpointing}
        found.append({**setting, "rows_a_chip": rows})
    return found


def bytes_of(figures):
    """Bytes of a chip's memory that a program needs."""
    return figures["argument_bytes"] + figures["temporary_bytes"] + figures["output_bytes"]


def most(room, start=8):
    """The largest number of rows that fits, to an eighth of its power of two; 0 if not even 1 fits.

    `room(rows)` returns the bytes that are left, or None if the rows do not fit. Each call takes minutes; since memory
    grows linearly with the rows, two calls tell roughly where it ends.
    """
    left, too_many, rows = {}, math.inf, start
    while True:
        found = room(rows)
        if found is None:
            too_many = rows
        else:
            left[rows] = found
        low = max(left, default=0)
        step = _step(low)
        if too_many - low <= step:
            return low
        rows = 4 * low if too_many == math.inf else (low + too_many) // 2
        if len(left) > 1:
            # The slope over all results: for some number of rows the compiler may need less than for a smaller one.
            least = min(left)
            row_bytes = (left[least] - left[low]) / (low - least)
            guess = int(low + left[low] / row_bytes) if row_bytes > 0 else 2 * low
            # At least the next step: the search ends when one number fits and the next one does not.
            guess = max(low + step, guess // _step(guess) * _step(guess))
            rows = guess if guess < too_many else rows


def _step(rows):
    """An eighth of the largest power of two within `rows`, at least 1."""
    return max(1, (1 << rows.bit_length()) // 16)


class Rows:
    """What building a model reads of prepared data: rows that suit the objective of a recipe, and a vocabulary."""

    directory, packed = "the plan", False

    def __init__(self, recipe, vocabulary_size):
        self.tokenizer = types.SimpleNamespace(vocabulary_size=vocabulary_size, pad_id=0, sep_id=2, mask_id=4)
        tasks = pretraining_model.model_config(recipe, recipe.direction, self).pair_tasks
        self.has_pairs = bool(tasks) and recipe.objective != "span_boundary"
        self.pairs, self.masked_unit = tasks[0] if self.has_pairs else "full_sentences", recipe.masking_unit


def recipe_of(phase, config):
    """The PretrainConfig of a phase, one step of which is planned."""
    options = {name: value for name, value in phase.items() if name != "name"}
    of_plan = {"steps_per_execution": 1, "gradient_checkpointing": config.gradient_checkpointing}
    return PretrainConfig(data="", output="", **{**options, **of_plan})


def planned_model(phase, config):
    """The compiled Keras model of a phase, with the phase's optimizer."""
    recipe = recipe_of(phase, config)
    schedule = pretraining_model.schedule_of(recipe, recipe.steps)
    model = pretraining_model.build_pretrainer(recipe, Rows(recipe, config.vocabulary_size), True, schedule)
    model.optimizer.build(model.trainable_variables)
    model._symbolic_build(data_batch=batch_of(2, recipe, jax.numpy.zeros))  # makes the metrics
    return model


def predictions_of_row(recipe):
    """The predictions of a row in data that was prepared without an option for it."""
    return predictions_of(recipe, recipe.sequence_length, features.usual_predictions(recipe.sequence_length))


def batch_of(rows, recipe, make):
    """A batch, (inputs, labels), of the arrays that `make(shape, dtype)` returns."""
    predictions = predictions_of_row(recipe)
    inputs = {name: make((rows, recipe.sequence_length), "int32") for name in features.ENCODER_INPUTS}
    inputs["mask_positions"] = make((rows, predictions), "int32")
    labels = {
        "mask_ids": make((rows, predictions), "int32"),
        "mask_weights": make((rows, predictions), "float32"),
        "next_sentence_labels": make((rows,), "int32"),
    }
    return inputs, labels


def compile_step(model, devices, rows, phase, config):
    """The figures for one chip: dict of `fits`, bytes, operations, collectives and `compile_seconds`."""
    mesh = Mesh(np.array(devices).reshape(-1, config.model_devices), ("batch", "model"))

    def spread(variable, axes):
        return jax.ShapeDtypeStruct(variable.shape, variable.dtype, sharding=NamedSharding(mesh, PartitionSpec(*axes)))

    axes = {}
    if config.model_devices > 1:
        optimizer = model.optimizer
        slots = zip(model.trainable_variables, optimizer.first_moments, optimizer.second_moments, strict=True)
        axes = {id(one): axes_of_weight(slot[0], config.model_devices) for slot in slots for one in slot}
    if config.shard_optimizer:
        axes = {id(one): axes_of_state(one.shape, len(devices)) for one in model.optimizer.variables}
    groups = (model.trainable_variables, model.non_trainable_variables, model.optimizer.variables)
    groups += (model.metrics_variables,)
    state = tuple([spread(variable, axes.get(id(variable), ())) for variable in group] for group in groups)

    def part(shape, dtype):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec("batch")))

    recipe = recipe_of(phase, config)
    data = batch_of(rows, recipe, part)
    stays = jax.tree.map(lambda one: one.sharding, state)
    start = time.monotonic()
    heads_axis = "model" if config.model_devices > 1 else None
    there = attention.placed(attention.Placement("tpu", mesh, "batch", heads_axis, is_here=False))
    divided = contextlib.nullcontext()
    if config.shard_optimizer:  # the optimizer then divides gradients as its state is divided over these devices
        divided = DataParallelWithDividedState(devices=devices, auto_shard_dataset=False).scope()
    with there, divided:
        lowered = jax.jit(model.train_step, donate_argnums=0, out_shardings=(None, stays)).lower(state, data)
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        size = r"([\d.]+\w)"
        used = re.search(rf"\({size}\) exceeds available HBM \({size}\)|Used {size} of {size}", str(error))
        needed = " of ".join(filter(None, used.groups())) if used else str(error).splitlines()[0][:200]
        return {"fits": False, "needed": needed, "compile_seconds": time.monotonic() - start}
    memory, cost, program = compiled.memory_analysis(), compiled.cost_analysis(), text_of(compiled)
    counted = model.training_flops(rows, recipe.sequence_length, predictions_of_row(recipe))
    # If the program could not be printed, only the sum of the gradients.
    of_weights = {"count": 1, "bytes": sum(4 * math.prod(variable.shape) for variable in model.trainable_variables)}
    return {
        "fits": True,
        "argument_bytes": memory.argument_size_in_bytes,
        "temporary_bytes": memory.temp_size_in_bytes,
        "output_bytes": memory.output_size_in_bytes - memory.alias_size_in_bytes,
        "flops": cost["flops"],
        "counted_flops": counted / len(devices),
        "bytes_accessed": cost["bytes accessed"],
        "bytes_moved": sum(moved_by_group(program).values()) if program else None,
        "collectives": collectives(program) if program else {"all-reduce, by the size of the weights": of_weights},
        "compile_seconds": time.monotonic() - start,
    }


def estimate(figures, chip):
    """Milliseconds of a step if each part ran at the published rate: arithmetic, memory, links.

    Memory is (least, most): what reaches the chip's memory by the program's text, 0 where that cannot be printed, and
    what all operations read and write by the compiler's count, much of which stays within the chip.
    """
    # In a ring, what is summed is sent around twice, everything else once.
    sent = sum((1 + kind.startswith("all-reduce")) * one["bytes"] for kind, one in figures["collectives"].items())
    sizes = (figures["bytes_moved"] or 0, figures["bytes_accessed"])
    return (
        1000 * figures["flops"] / chip.flops,
        [1000 * size / chip.memory_bandwidth for size in sizes],
        1000 * sent / chip.link_bandwidth,
    )


def print_figures(figures, chip, phase):
    """Prints what one compiled step needs of a chip, and the days that the phase takes."""
    say(f"{figures['topology']}, {figures['chips']} chips, {figures['phase']}, {figures['rows']:,} sequences a step")
    if not figures["fits"]:
        say(f"  does not fit: {figures['needed']} of memory; compiling took {figures['compile_seconds']:.0f} s")
        return
    arguments, temporary = figures["argument_bytes"] / GIB, figures["temporary_bytes"] / GIB
    room = f"{bytes_of(figures) / GIB:.1f} of {chip.memory / GIB:.0f} GiB a chip"
    say(f"  fits: {room}, {arguments:.1f} of arguments, {temporary:.1f} temporary")
    ratio = figures["flops"] / figures["counted_flops"]
    say(f"  {figures['flops'] / 1e12:.2f} TFLOP a chip and step by the compiler, {ratio:.2f} times our own count")
    for kind, one in sorted(figures["collectives"].items()):
        say(f"  {kind}: {one['count']} with {one['bytes'] / 1e6:,.1f} MB in all")
    arithmetic, (moved, counted), links = estimate(figures, chip)
    least, most_ = max(arithmetic, moved, links), max(arithmetic, counted) + links
    recipe_rows = phase["steps"] * phase["batch_size"]
    days = [recipe_rows / figures["rows"] * time / 1000 / SECONDS_OF_DAY for time in (least, most_)]
    digits = ".1f" if days[0] >= 1 else ".2f"
    known = f"{moved:.0f} to {counted:.0f}" if figures["bytes_moved"] else f"at most {counted:.0f}"
    say(
        f"  ESTIMATE, at published rates: arithmetic {arithmetic:.0f} ms, memory {known}, links {links:.0f}: a step "
        f"takes {least:.0f} ms if all overlaps, {most_:.0f} if the links do not and nothing stays within the chip; the "
        f"recipe's {recipe_rows / 1e6:,.0f} million sequences take {days[0]:{digits}} to {days[1]:{digits}} days"
    )
    say(f"  compiling took {figures['compile_seconds']:.0f} s")
