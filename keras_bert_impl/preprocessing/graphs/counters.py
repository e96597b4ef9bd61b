"""Numbers that a graph counts, whichever strategy is in scope: `tf.Variable` would be copied to its devices."""

import uuid

from keras_bert_impl.quiet_tensorflow import tf


class Counter:
    """A number that begins with 0; graphs of one process may add to it at the same time."""

    def __init__(self):
        with tf.init_scope():
            self.handle = tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=[], shared_name=str(uuid.uuid4()))
            tf.raw_ops.AssignVariableOp(resource=self.handle, value=tf.constant(0, tf.int64))

    def next(self):
        """The number before 1 is added to it."""
        return tf.raw_ops.ResourceCountUpTo(resource=self.handle, limit=2**62, T=tf.int64)

    def add(self, number):
        """The operation that adds to it."""
        return tf.raw_ops.AssignAddVariableOp(resource=self.handle, value=tf.cast(number, tf.int64))

    def value(self):
        return int(tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=tf.int64))
