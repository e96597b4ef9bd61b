"""LoRA in the files of a layer."""

from keras import ops


class KeptLora:
    """Mixin for a layer of Keras that may have LoRA: its files keep the kernel and both factors of the update.

    Keras saves the kernel with the update added, and sets both factors to zero when it loads them (keras 3.15), after
    which neither would ever learn.
    """

    def save_own_variables(self, store):
        for factor in self.lora_factors:
            store[factor.name] = factor
        is_enabled, self.lora_enabled = self.lora_enabled, False
        try:
            super().save_own_variables(store)
        finally:
            self.lora_enabled = is_enabled

    def load_own_variables(self, store):
        """Loads what was saved. From a file of the layer without LoRA, the first factor of the update keeps its random
        values, and the second is zero."""
        before = [ops.copy(factor) for factor in self.lora_factors[:1]]
        super().load_own_variables(store)
        values = [store[factor.name] for factor in self.lora_factors if factor.name in store.keys()] or before
        for factor, value in zip(self.lora_factors, values, strict=False):
            factor.assign(value)

    @property
    def lora_factors(self):
        """The two factors of the update; empty without LoRA."""
        return [weight for weight in self.weights if weight.name.startswith("lora_")]
