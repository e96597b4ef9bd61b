"""From text to pre-training batches: in NumPy, and in tf.data graphs that give the same batches."""
