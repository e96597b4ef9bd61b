"""Reads the text of a program that the TPU compiler has made: collectives, and the bytes that reach the memory."""

import collections
import math
import re

import jax

BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "f32": 4, "s32": 4, "u32": 4, "f64": 8}
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
# These name a buffer or a part of one, and move nothing.
NOT_MOVING = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id")


def text_of(compiled):
    """The compiled program's text; None where libtpu fails to print it (0.0.52 does for some v5p and v6e programs)."""
    try:
        return compiled.as_text()
    except jax.errors.JaxRuntimeError:
        return None


def collectives(program):
    """{kind: {"count", "bytes"}} of what the chips send each other; the bytes are those of the results."""
    found = {}
    for line in program.splitlines():
        match = re.search(rf"= (.*?) ({'|'.join(COLLECTIVES)})(-start)?\(", line)
        if not match:
            continue
        result, kind, starts = match.groups()
        sizes = array_bytes(result, everywhere=True)
        # The start of an asynchronous collective returns both operand and result.
        size = sum(sizes) // 2 if starts and kind != "all-reduce" else sum(sizes)
        one = found.setdefault(kind, {"count": 0, "bytes": 0})
        one["count"], one["bytes"] = one["count"] + 1, one["bytes"] + size
    return found


def moved_by_group(program):
    """{part of the model: bytes} of what each operation of the program's entry, which runs on the chip as one, reads
    from memory and writes to it. An array that an operation reads only in part counts whole, and loops are left out."""
    entry = program[program.index("\nENTRY ") :].splitlines()[1:]
    sizes, moved = {}, collections.Counter()
    for line in entry:
        match = re.match(r"\s*(?:ROOT )?%?([\w.-]+) = (.*?) ([\w-]+)\((.*)", line)
        if not match:
            continue
        name, result, operation, rest = match.groups()
        sizes[name] = sum(array_bytes(result))
        if operation in NOT_MOVING or operation.endswith("-done"):
            continue
        if operation in ("copy-start", "slice-start"):
            # Between the memory and the chip's own, ahead of the operation that reads it.
            moved["copied into or out of the chip"] += min(array_bytes(result, everywhere=True)[:2])
            continue
        operands = set(re.findall(r"%([\w.-]+)", rest.split("), ")[0]))
        moved[group_of(line, operation)] += sizes[name] + sum(sizes.get(operand, 0) for operand in operands)
    return moved


def array_bytes(result, everywhere=False):
    """Bytes of each array that a result's type names; 0 for one in the chip's own memory, S(1), unless `everywhere`."""
    return [
        0
        if "S(1)" in layout and not everywhere
        else BYTES.get(kind, 4) * math.prod(int(size) for size in shape.split(",") if size)
        for kind, shape, layout in re.findall(r"(\w+)\[([\d,]*)\](\{[^}]*\})?", result)
    ]


def group_of(line, operation):
    """The part of the model that an operation belongs to, all blocks together, and whether it is of the gradient."""
    match = re.search(r'op_name="([^"]*)"', line)
    if not match:
        return f"({operation})"
    path = re.sub(r"(block|transformer_layer)_\d+", r"\1", re.sub(r"jit\([\w.]+\)/?", "", match.group(1)))
    where = re.sub(r"\w+\(|\)", "", path).strip("/")
    return f"{where} [{operation}]{' backward' if 'transpose(' in path else ''}"
