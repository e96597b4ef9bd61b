"""Random numbers of a seed: Keras' own, on torch as operations that its compiler takes.

Keras makes there a generator of the seed, which is no tensor and ends a compiled program. The numbers are the same.
"""

import keras


def uniform(shape, seed):
    """Numbers from 0 to less than 1, float32 of this shape; `seed` is an int or a `keras.random.SeedGenerator`."""
    if keras.backend.backend() == "torch":
        return _uniform(_key(seed), shape)
    return keras.random.uniform(shape, dtype="float32", seed=seed)


def categorical(logits, seed):
    """A class for each row of logits, (rows, classes): (rows,), int32."""
    if keras.backend.backend() == "torch":
        return _categorical(_key(seed), logits)
    return keras.random.categorical(logits, 1, dtype="int32", seed=seed)[:, 0]


def _key(seed):
    """The two numbers of a seed, as Keras draws them: int64 (2,)."""
    key = seed.next() if isinstance(seed, keras.random.SeedGenerator) else [seed, 0]
    return keras.ops.convert_to_tensor(key, dtype="int64")


if keras.backend.backend() == "torch":
    import collections.abc

    import torch

    def _generator(key):
        return torch.Generator(device=key.device).manual_seed(int(key.sum()) & 0xFFFFFFFF)

    @torch.library.custom_op("keras_bert_impl::uniform", mutates_args=())
    def _uniform(key: torch.Tensor, shape: collections.abc.Sequence[int]) -> torch.Tensor:
        return torch.rand(shape, generator=_generator(key), device=key.device)

    @_uniform.register_fake
    def _(key, shape):
        return torch.empty(shape, device=key.device)

    @torch.library.custom_op("keras_bert_impl::categorical", mutates_args=())
    def _categorical(key: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        probabilities = torch.softmax(logits, dim=-1)
        return torch.multinomial(probabilities, 1, replacement=True, generator=_generator(key))[:, 0].int()

    @_categorical.register_fake
    def _(key, logits):
        return torch.empty(logits.shape[:1], dtype=torch.int32, device=key.device)
