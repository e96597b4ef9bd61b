"""Models answer requests before the first client asks."""

import numpy as np
from made_servers import write_model, write_requests
from tiers import on

from keras_bert_impl.serving.servable import Servable, SessionOptions
from keras_bert_impl.serving.warm_up import warm_up

pytestmark = on("tensorflow")


class Noting:
    """Notes what a servable is asked."""

    def __init__(self, servable):
        self.asked, self._run = [], servable.run
        servable.run = self.run

    def run(self, signature, inputs):
        self.asked.append((signature, inputs["text"].tolist()))
        return self._run(signature, inputs)


def test_recorded_requests_are_sent(tmp_path):
    write_model(tmp_path)
    write_requests(tmp_path / "1", ["the cat", "a dog"])
    servable = Servable("toy", 1, tmp_path / "1", SessionOptions())
    noted = Noting(servable)
    assert warm_up(servable) == 2
    assert noted.asked == [("serving_default", [b"the cat"]), ("serving_default", [b"a dog"])]


def test_without_recorded_requests_texts_are_sent_to_each_signature_that_takes_texts(tmp_path):
    write_model(tmp_path)
    servable = Servable("toy", 1, tmp_path / "1", SessionOptions())
    noted = Noting(servable)
    assert warm_up(servable) == 8
    assert {signature for signature, _ in noted.asked} == {"serving_default", "echo", "words", "keep"}
    assert np.unique([len(texts[0]) for _, texts in noted.asked]).size == 2
