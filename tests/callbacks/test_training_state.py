"""Files of saved states: what is damaged or does not belong to the model."""

import keras
import numpy as np
import pytest

from keras_bert_impl.callbacks.training_state import TrainingState, restore
from keras_bert_impl.optimization import BertAdamW


def small_model():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.Dropout(0.5)])
    model.compile(optimizer=BertAdamW(1e-2), loss="mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    return model


def test_a_damaged_state_is_passed_over_for_the_one_before(tmp_path, capsys):
    state, model = TrainingState(tmp_path), small_model()
    for step in (1, 2, 3):
        state.save(model, step, {"step": step})
    assert [path.name for path in state.paths()] == ["step-00000002.npz", "step-00000003.npz"]
    content = bytearray(state.paths()[1].read_bytes())
    content[len(content) // 3] ^= 255
    state.paths()[1].write_bytes(content)
    step, _, notes = state.read_last()
    assert step == 2 and notes == {"step": 2}
    assert "step-00000003.npz is damaged" in capsys.readouterr().out


def test_a_full_disk_leaves_the_states_there_are(tmp_path, monkeypatch):
    state, model = TrainingState(tmp_path), small_model()
    state.save(model, 1)

    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        state.save(model, 2)
    monkeypatch.undo()
    assert state.read_last()[0] == 1


def test_a_state_of_another_model_is_refused(tmp_path):
    state = TrainingState(tmp_path)
    state.save(small_model(), 1)
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(5), keras.layers.Dropout(0.5)])
    other.compile(optimizer=BertAdamW(1e-2), loss="mse")
    with pytest.raises(ValueError, match=r"has shape \(3, 2\), this run's has \(3, 5\)"):
        restore(other, state.read_last()[1])
