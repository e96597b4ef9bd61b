"""tf.data graphs from text to batches. TensorFlow reads the data, whichever backend the model runs on."""

from keras_bert_impl.startup import leave_accelerators_to_the_backend

leave_accelerators_to_the_backend()
