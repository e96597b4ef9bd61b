"""What a word learns that stands in a batch many times."""

import keras
import numpy as np
from tiers import every_backend

from keras_bert_impl import BertConfig, BertEncoder, Pretrainer

pytestmark = every_backend

ROWS, LENGTH, WORD = 64, 64, 7


def change_of_word(policy, jit_compile):
    """How the vector of a word that stands everywhere, and of one that stands once, changes in a step."""
    keras.utils.set_random_seed(0)
    config = BertConfig(20, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=8, initializer_range=0.5)
    config = config.__class__(**{**vars(config), "hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0})
    model = Pretrainer(BertEncoder(config, dtype=keras.dtype_policies.get(policy)), next_sentence=False)
    model.compile(keras.optimizers.SGD(100.0), jit_compile=jit_compile)
    ids = np.full((ROWS, LENGTH), WORD, "int32")
    ids[0, 5] = WORD + 1
    ones = np.ones_like(ids)
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ones, "mask_positions": ones[:, :1]}
    labels = {"mask_ids": ones[:, :1], "mask_weights": np.ones((ROWS, 1), "float32")}
    table = model.encoder.token_embedding.embeddings
    before = keras.ops.convert_to_numpy(table)
    model.train_on_batch(inputs, labels)
    return (keras.ops.convert_to_numpy(table) - before)[[WORD, WORD + 1]]


def test_in_bfloat16_a_word_learns_from_all_its_places():
    """Its 4,095 places receive similar gradients: added one by one in bfloat16, most would be lost."""
    jit_compile = keras.backend.backend() == "jax"
    found, expected = (change_of_word(policy, jit_compile) for policy in ("mixed_bfloat16", "float32"))
    for row in range(2):
        assert np.linalg.norm(found[row] - expected[row]) < 0.06 * np.linalg.norm(expected[row])
