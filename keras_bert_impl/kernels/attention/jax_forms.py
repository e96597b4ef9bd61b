"""Attention on JAX's accelerators: two Pallas kernels on a TPU, over the mesh of the distribution; cuDNN's on a GPU."""

import concurrent.futures
import functools
import warnings

import jax
import jax.numpy as jnp
import keras
from jax.sharding import PartitionSpec

from keras_bert_impl.kernels.attention import tpu, tpu_long, windows
from keras_bert_impl.kernels.attention.device_check import cannot_compute, is_near, random_inputs
from keras_bert_impl.kernels.attention.placement import placement
from keras_bert_impl.kernels.attention.plain import AttentionInputs, by_heads, by_ops, joined, masking_of

LONGEST_TRIED = 2048  # tokens of a row with which a kernel is compared with the plain form


def form_for(inputs):
    """The form for the device in question; None where Keras' attention or blocks within a window are it."""
    place = placement()
    if place.platform == "tpu":
        return tpu_form(inputs, place)
    if windows.suits(inputs):
        return None
    if place.platform == "cpu":
        # Keras' is not fused there: it takes 1.1 to 2 times as long from 128 tokens on, and XLA has no float16 for it.
        return by_ops
    if place.platform == "gpu" and not inputs.dropout_rate:
        return by_cudnn
    return None


def by_cudnn(inputs):
    """Keras' fused attention, with a mask that cuDNN takes."""
    queries, keys = inputs.query.shape[1], inputs.key.shape[1]
    ((name, found),) = masking_of(inputs).items()
    if found is not None:
        # cuDNN refuses a mask with one row for all queries; Keras would log a traceback for each layer.
        found = jnp.broadcast_to(found, (*found.shape[:2], queries, keys))
    # The gradient of odd lengths is refused with any mask.
    flash = False if found is not None and (queries % 2 or keys % 2) else None
    return joined(keras.ops.dot_product_attention(*by_heads(inputs), **{name: found}, flash_attention=flash))


def tpu_form(inputs, place):
    """The kernel; where it cannot compute the inputs or does so wrongly, blocks within a window, or the plain form with
    a warning.

    It is never Keras' fused attention, which on a TPU and called eagerly takes the mask of the first row for all rows.
    """
    refusal = why_not(inputs, place)
    if not refusal and place.is_here and not place.interpret:
        is_fused = len(arrays_of(inputs, place)) == 1
        refusal = _what_is_wrong(sizes_of(inputs, place), inputs.query.shape[1], inputs.query.dtype, is_fused)
    if not refusal:
        return functools.partial(by_kernel, place=place)
    if windows.suits(inputs):
        return windows.by_blocks
    warnings.warn(f"Attention keeps its probabilities in memory, without the TPU kernel: {refusal}.", stacklevel=2)
    return by_ops


def why_not(inputs, place):
    """Why the kernel cannot compute these inputs there; None if it can."""
    batch, length, _ = inputs.query.shape
    dtype, mask = inputs.query.dtype, inputs.mask
    if inputs.bias is not None:
        return "it does not support a bias of the scores"
    if inputs.global_places is not None:
        return "it does not support global tokens"
    for count, axis, what in ((batch, place.batch_axis, "rows"), (inputs.num_heads, place.heads_axis, "heads")):
        if count % place.parts(axis):
            return f"{count} {what} cannot be shared evenly by {place.parts(axis)} devices"
    sizes = sizes_of(inputs, place)
    if sizes.together is None:
        return f"{sizes.num_heads} heads of width {sizes.head_width} do not have a multiple of {tpu.LANES} columns"
    if tpu_long.is_for(length) and inputs.dropout_rate:
        return (
            f"sequences of {length} tokens are longer than {tpu.MOST_TOKENS}, or than {tpu.MOST_UNEVEN_TOKENS} and no "
            f"multiple of {tpu.LANES}, and the kernel for such sequences has no dropout"
        )
    if dtype not in (jnp.bfloat16, jnp.float32):
        return f"it supports bfloat16 and float32, not {dtype}"
    if mask is not None and inputs.sequence_ids is None and mask.shape[1:3] != (1, 1):
        return f"a mask of shape {mask.shape} differs between heads or queries, and there are no sequence_ids"
    return None


def sizes_of(inputs, place):
    """The `tpu.Sizes` of one device's part of the inputs."""
    masking = "none" if inputs.mask is None else "keys" if inputs.sequence_ids is None else "sequences"
    num_heads = inputs.num_heads // place.parts(place.heads_axis)
    return tpu.Sizes(num_heads, inputs.head_width, masking, inputs.dropout_rate, place.interpret, inputs.window)


def arrays_of(inputs, place):
    """What the kernel reads: a tuple of one array or of three."""
    # The kernel finds its columns in one array, of which XLA would have to make three. By the TPU compiler's count, a
    # step on three arrays moves 4 % more bytes with 64 rows of 128 tokens, and 1 % fewer with 16 of 512. Where heads
    # are divided, a device takes the columns of its heads, which are no single slice of that array.
    is_fused = inputs.fused is not None and not place.heads_axis
    return (inputs.fused,) if is_fused else (inputs.query, inputs.key, inputs.value)


def by_kernel(inputs, place):
    """The kernel of `tpu.py`, or that for long rows, on one device or on those of the mesh."""
    sizes, batch, attend = sizes_of(inputs, place), len(inputs.query), kernel_for(inputs.query.shape[1])
    arrays = arrays_of(inputs, place)
    ids = numbers_of_sequences(inputs)
    seeds = tpu.seeds_of_rows(inputs.seed.next(), batch) if sizes.dropout_rate else jnp.zeros((batch, 2), "int32")
    if place.mesh is None:
        return attend(sizes, arrays, ids, seeds, jnp.zeros(1, "int32"))

    def of_device(ids, seeds, *arrays):
        index = jax.lax.axis_index(place.heads_axis) if place.heads_axis else 0
        first_head = jnp.full(1, index * sizes.num_heads, "int32")
        return attend(sizes, arrays, ids, seeds, first_head)

    # XLA does not divide a kernel over a mesh by itself.
    # Rows that devices cannot share evenly are computed by each of them, as Keras' trainer is made to give them.
    shared = None if batch % place.parts(place.batch_axis) else place.batch_axis
    rows, columns = PartitionSpec(shared), PartitionSpec(shared, None, place.heads_axis)
    return jax.shard_map(
        of_device,
        mesh=place.mesh,
        in_specs=(rows, rows, *[columns] * len(arrays)),
        out_specs=columns,
        check_vma=False,  # Pallas' results do not say over which axes they differ
    )(ids, seeds, *arrays)


def kernel_for(length):
    """The kernel for rows of this length."""
    return tpu_long.attend if tpu_long.is_for(length) else tpu.attend


def numbers_of_sequences(inputs):
    """int32 (batch, 1, length): of keys that the mask shows the number of their sequence, or 1; of others 0, or in
    packed rows, where padding sees itself, below 0 a number of their own."""
    batch, length, _ = inputs.query.shape
    if inputs.mask is None:
        return jnp.ones((batch, 1, length), "int32")
    seen = jnp.any(inputs.mask[:, 0], axis=1)  # (batch, length), by any query
    if inputs.sequence_ids is not None:
        # Plus 1, since tokens of the number 0 see each other where the mask says so.
        numbers = jnp.where(seen, inputs.sequence_ids.astype("int32") + 1, -1 - jnp.arange(length))
    else:
        if inputs.window is None:
            seen = seen == jnp.any(seen, axis=1, keepdims=True)  # as in the plain form, a row without any sees all
        numbers = seen.astype("int32")
    return jnp.broadcast_to(numbers[:, None, :], (batch, 1, length))


@functools.cache
def _what_is_wrong(sizes, length, dtype, is_fused):
    """Compares the kernel with the plain form on this device, once for each length; None if they agree.

    Every process of a slice compares on a device of its own: its chips are of one kind and find the same.
    """
    # A step is being traced, by JAX and by Keras, but in this thread alone: another one computes.
    # The plain form of long rows would take more memory than a chip has.
    attend, length = kernel_for(length), min(length, LONGEST_TRIED)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(difference, sizes, length, dtype, attend, is_fused).result()


def difference(sizes, length, dtype, attend=tpu.attend, is_fused=True):
    """What differs between the kernel and the plain form on a small batch, or why the kernel does not compile; None if
    they agree."""
    try:
        results = computed_both_ways(sizes, length, dtype, attend, is_fused)
    except Exception as error:  # v4 has too little memory; a kind of chip or a version of JAX may lack anything else
        return cannot_compute(error)
    for what, (found, expected) in results.items():
        if not is_near(found, expected):
            return f"on this device, its {what} differ from those of the plain form"
    return None


def computed_both_ways(sizes, length, dtype, attend=tpu.attend, is_fused=True):
    """{"values": (by the kernel, by the plain form), "gradients": the same} of a small batch, with the same units
    dropped; `is_fused` is whether queries, keys and values are one array."""
    inputs, outer = random_inputs(2, length, sizes.num_heads, sizes.head_width, sizes.masking, dtype)
    seed = jnp.array([7, 11], "uint32")
    seeds = tpu.seeds_of_rows(seed, 2)

    def kernel(*arrays):
        return attend(sizes, arrays, numbers_of_sequences(inputs), seeds, jnp.zeros(1, "int32"))

    def dropped(probabilities, rate, _):
        kept = tpu.kept_units(seed, 2, sizes.num_heads, length, rate)
        return jnp.where(kept, probabilities / (1 - rate), jnp.zeros_like(probabilities))

    # What padding sees in Splash has no meaning.
    counts = numbers_of_sequences(inputs)[:, 0, :, None] > 0 if attend is tpu_long.attend else True

    def plain(*arrays):
        three = jnp.split(arrays[0], 3, axis=-1) if is_fused else arrays
        seen = {"mask": inputs.mask, "window": sizes.window, "dropout_rate": sizes.dropout_rate}
        return by_ops(AttentionInputs(*three, sizes.num_heads, **seen), dropped)

    def value_and_gradients(form, arrays, outer):
        value, pull = jax.vjp(lambda *arrays: jnp.where(counts, form(*arrays), 0), *arrays)
        return value, jnp.concatenate(pull(outer), axis=-1)

    arrays = (inputs.fused,) if is_fused else (inputs.query, inputs.key, inputs.value)
    compiled = jax.jit(value_and_gradients, static_argnums=0)
    results = (compiled(form, arrays, outer) for form in (kernel, plain))
    return dict(zip(("values", "gradients"), zip(*results, strict=True), strict=True))
