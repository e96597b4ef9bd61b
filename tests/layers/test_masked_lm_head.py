import keras
import numpy as np
from keras import ops
from tiers import every_backend

from keras_bert_impl.layers import MaskedLMHead

HIDDEN = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
POSITIONS = np.array([[1, 4], [0, 2]], "int32")


def make_head():
    embedding = keras.layers.ReversibleEmbedding(7, 3)
    return MaskedLMHead(embedding), embedding


def test_logits_are_those_of_the_masked_positions_alone():
    head, _ = make_head()
    every = ops.convert_to_numpy(head(HIDDEN, np.tile(np.arange(5, dtype="int32"), (2, 1))))
    some = ops.convert_to_numpy(head(HIDDEN, POSITIONS))
    np.testing.assert_allclose(some[0], every[0, [1, 4]], atol=1e-6)
    np.testing.assert_allclose(some[1], every[1, [0, 2]], atol=1e-6)


@every_backend
def test_the_table_is_the_embedding_s_own():
    head, embedding = make_head()
    before = ops.convert_to_numpy(head(HIDDEN, POSITIONS))
    embedding.embeddings.assign(2 * ops.convert_to_numpy(embedding.embeddings))
    np.testing.assert_allclose(ops.convert_to_numpy(head(HIDDEN, POSITIONS)), 2 * before, atol=1e-5)
    assert sum(weight.shape == (7, 3) for weight in head.weights) == 1


def test_a_model_around_the_head_survives_its_file(tmp_path):
    head, embedding = make_head()
    ids, positions = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    model = keras.Model([ids, positions], head(embedding(ids), positions))
    arrays = [np.array([[1, 2, 3, 4, 5]], "int32"), np.array([[0, 3]], "int32")]
    model.save(tmp_path / "head.keras")
    reloaded = keras.saving.load_model(tmp_path / "head.keras")
    np.testing.assert_allclose(reloaded.predict(arrays, verbose=0), model.predict(arrays, verbose=0), atol=1e-6)
