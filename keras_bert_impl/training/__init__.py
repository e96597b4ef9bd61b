"""Pre-training, fine-tuning and data preparation as a library, and the recipes."""

from keras_bert_impl.startup import leave_accelerators_to_the_backend

leave_accelerators_to_the_backend()
