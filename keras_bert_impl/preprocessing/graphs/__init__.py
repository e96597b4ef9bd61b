"""Text to rows of ids as TensorFlow graphs, for tf.data and SavedModel; the tokenizers give the same ids without."""
