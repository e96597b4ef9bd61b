"""tf.data graphs from text to batches. TensorFlow reads; which backend computes is another matter."""

from keras_bert_impl.startup import leave_accelerators_to_the_backend

leave_accelerators_to_the_backend()
