"""Keras' own `export`, which cannot write a model with several inputs by name on every backend."""


class KerasExportMixin:
    """A failure of `keras.Model.export` says what writes a SavedModel instead."""

    def export(self, filepath, format="tf_saved_model", **arguments):
        """`keras.Model.export`: a graph that takes token ids.

        Raises: ValueError where Keras cannot write this model in this format on this backend: its SavedModel of JAX
            and torch takes no dict of inputs of unknown length.
        """
        try:
            return super().export(filepath, format=format, **arguments)
        except OSError:
            raise  # a full disk, a missing folder
        except Exception as error:
            raise ValueError(
                f"Keras cannot export {type(self).__name__} {self.name!r} as {format!r} here "
                f"({type(error).__name__}: {str(error)[:200]}). "
                "keras_bert_impl.export.export_saved_model(model, directory) writes a SavedModel that takes strings, "
                "whatever backend trained the model."
            ) from error
