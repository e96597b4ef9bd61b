"""Attention in long rows on a GPU by torch's flex attention (Dong et al. 2024), which passes over what is hidden.

Blocks of 128 queries and keys that no mask joins are not computed at all: those outside a window, and those of other
sequences in packed rows. No array of length x length is made but the bits of the mask. It knows no dropout.

On an H200 in bfloat16, forward and backward with 12 heads over 32,768 tokens in packed rows of four sequences, beside
Keras' fused attention and the blocks of `windows.py`, in milliseconds: a window of 129 tokens in rows of 2,048 takes
2.2, 4.7 and 3.8; in rows of 8,192 it takes 2.7, 14.7 and 3.7; whole rows of 2,048 take 2.1 and 4.4, of 8,192 3.6 and
13.2. Whole rows of 512 take the same time in both, so that they are left to the fused form. Compiling takes half a
minute.
"""

import functools
import warnings

import torch
from torch.nn.attention import flex_attention

from keras_bert_impl.kernels.attention import windows
from keras_bert_impl.kernels.attention.device_check import cannot_compute, differing, random_inputs
from keras_bert_impl.kernels.attention.plain import by_heads, joined

SHORT = 1024  # whole rows up to this length are left to the fused form


def form_for(inputs):
    """The form for these inputs on the GPU that holds them; None if another suits them better, or with a warning if it
    cannot compute them."""
    if (
        inputs.dropout_rate
        or inputs.global_places is not None
        or torch.compiler.is_exporting()
        or not inputs.query.shape[0]
    ):
        return None
    if not (windows.suits(inputs) or _are_long_packed_rows(inputs)):
        return None
    array = inputs.query
    wrong = _what_is_wrong(inputs.num_heads, inputs.head_width, array.dtype, array.device, inputs.window)
    if not wrong:
        return by_flex
    warnings.warn(
        f"Attention in long sequences uses more memory and time than necessary, because {wrong}.", stacklevel=2
    )
    return None


def _are_long_packed_rows(inputs):
    is_packed = inputs.sequence_ids is not None and inputs.window is None and inputs.bias is None
    return is_packed and inputs.query.shape[1] > SHORT


def by_flex(inputs):
    """The mixed values (batch, length, width) of an AttentionInputs."""
    query, key, value = (part.transpose(1, 2) for part in by_heads(inputs))
    attend, _ = _functions(query.device.type == "cpu" or torch.compiler.is_compiling())
    return joined(attend(query, key, value, block_mask=_blocks_of(inputs)).transpose(1, 2))


def _blocks_of(inputs):
    """The `BlockMask` of an AttentionInputs. The layers of a model have their mask in common: what the first has made
    of it is kept with the mask."""
    if inputs.mask is None or torch.compiler.is_compiling():  # which computes what is equal once
        return _block_mask(inputs)
    mask, ids, made = inputs.mask, inputs.sequence_ids, inputs.mask.__dict__.setdefault("blocks_by_window", {})
    state = len(inputs.query), 0 if mask.is_inference() else mask._version  # which a change in place counts up
    kept_state, kept_ids, blocks = made.get(inputs.window, (None, None, None))
    if kept_state != state or kept_ids is not ids:
        blocks = _block_mask(inputs)
        made[inputs.window] = state, ids, blocks
    return blocks


def _block_mask(inputs):
    numbers, window, device = windows.numbers_of(inputs), inputs.window, inputs.query.device
    batch, length = numbers.shape
    _, create = _functions(device.type == "cpu" or torch.compiler.is_compiling())
    sees = _sees_sequence(numbers) if inputs.sequence_ids is not None else _sees_tokens(numbers)
    if window is not None:
        sees = flex_attention.or_masks(flex_attention.and_masks(sees, _sees_near(window)), _sees_itself)
    return create(sees, batch, None, length, length, device=device)


def _sees_sequence(numbers):
    def sees(row, head, query, key):
        return (numbers[row, query] == numbers[row, key]) & (numbers[row, key] > 0) | (query == key)

    return sees


def _sees_tokens(numbers):
    return lambda row, head, query, key: numbers[row, key] > 0


def _sees_itself(row, head, query, key):
    return query == key


def _sees_near(window):
    return lambda row, head, query, key: (query - key).abs() <= window


def _functions(as_they_are):
    """(flex_attention, create_block_mask), compiled; as they are on a CPU, for tests, and within what is compiled."""
    return (flex_attention.flex_attention, flex_attention.create_block_mask) if as_they_are else _compiled()


@functools.cache
def _compiled():
    return torch.compile(flex_attention.flex_attention), torch.compile(flex_attention.create_block_mask)


@torch.compiler.assume_constant_result
@functools.cache
def _what_is_wrong(num_heads, head_width, dtype, device, window):
    """Compares it with the plain form on this device, before it is first used; None if they agree."""
    with torch.inference_mode(False), torch.enable_grad():
        return difference(num_heads, head_width, dtype, window)


def difference(num_heads, head_width, dtype, window, attend=by_flex, length=320):
    """What differs on a small batch, values or gradients, or the error in which it ends; None if nothing does."""
    try:
        for masking in ("keys", "sequences"):
            inputs, outer = random_inputs(2, length, num_heads, head_width, masking, dtype)
            if what := differing(attend, inputs._replace(window=window), outer):
                return f"the {what} of flex_attention differ from those of the plain form on this device"
    except Exception as error:  # without a compiler, or a version of torch without a kernel for this device or type
        return cannot_compute(error)
    return None
