"""Files of saved states: what is damaged or does not belong to the model."""

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from saved_arrays import all_arrays, read_last
from tiers import every_backend, full_but, on

from keras_bert_impl.callbacks.saved_states import FileState, TrainingState, restore, variables_of
from keras_bert_impl.callbacks.sharded_state import DamagedState, ShardedState, checksums
from keras_bert_impl.optimization import BertAdamW

of_jax = on("jax")  # only JAX's processes write together


def jax_array(array):
    import jax

    return jax.numpy.asarray(array)


def small_model():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.Dropout(0.5)])
    model.compile(optimizer=BertAdamW(1e-2), loss="mse", **QUICK_STEPS)
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    return model


@every_backend
def test_a_damaged_state_is_passed_over_for_the_one_before(tmp_path, capsys):
    state, model = TrainingState(tmp_path), small_model()
    for step in (1, 2, 3):
        state.save(model, step, {"step": step})
    assert [path.name for path in state.paths()] == ["step-00000002.npz", "step-00000003.npz"]
    content = bytearray(state.paths()[1].read_bytes())
    for place in range(len(content) // 3, len(content) // 3 + 32):  # some bytes of a zip file mean nothing
        content[place] ^= 255
    state.paths()[1].write_bytes(content)
    step, _, notes = read_last(tmp_path)
    assert step == 2 and notes == {"step": 2}
    assert "step-00000003.npz is damaged, and is now step-00000003.npz.damaged" in capsys.readouterr().out
    assert (tmp_path / "step-00000003.npz.damaged").read_bytes() == content, "nothing is removed"


@pytest.mark.parametrize("step", full_but([1, 31], 31))
def test_no_byte_changes_an_array_unnoticed(tmp_path, step):
    state = TrainingState(tmp_path)
    state.save(small_model(), 1)
    (path,) = state.paths()
    content, expected = path.read_bytes(), all_arrays(FileState(path))
    detected = 0
    for place in range(0, len(content), step):
        path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
        try:
            found = FileState(path)
            found.check()
        except DamagedState:
            detected += 1
            continue
        for name, array in expected.items():
            np.testing.assert_array_equal(all_arrays(found)[name], array)
    assert detected > len(content) / step / 2


def test_a_training_whose_states_are_all_damaged_does_not_begin_anew(tmp_path):
    state = TrainingState(tmp_path)
    state.save(small_model(), 1)
    state.paths()[0].write_bytes(b"nothing of it")
    for _ in range(2):  # the second time the file has its other name
        with pytest.raises(ValueError, match=r"All states in .* are damaged, and have been renamed to \*.damaged"):
            read_last(tmp_path)


def test_a_state_that_cannot_be_read_now_stays(tmp_path, monkeypatch):
    state = TrainingState(tmp_path)
    for step in (1, 2):
        state.save(small_model(), step)
    before = state.paths()

    def fail(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(np, "load", fail)
    with pytest.raises(ValueError, match=r"step-00000002.npz cannot be read \(.*Input/output error\)\. Nothing was"):
        read_last(tmp_path)
    monkeypatch.undo()
    assert state.paths() == before and read_last(tmp_path)[0] == 2


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
    assert read_last(tmp_path)[0] == 1


def test_a_state_of_another_model_is_refused(tmp_path):
    state = TrainingState(tmp_path)
    state.save(small_model(), 1)
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(5), keras.layers.Dropout(0.5)])
    other.compile(optimizer=BertAdamW(1e-2), loss="mse")
    with pytest.raises(ValueError, match=r"has shape \(3, 2\), this run's has \(3, 5\)"):
        restore(other, next(state.newest_first()))


def in_directories(directory):
    """The states as several JAX processes save them."""
    state = TrainingState(directory)
    state.is_sharded = True
    return state


def values_of(model):
    return [keras.ops.convert_to_numpy(variable) for group in variables_of(model).values() for variable in group]


@of_jax
def test_a_directory_gives_every_value_back(tmp_path):
    state, model = in_directories(tmp_path), small_model()
    for step in (1, 2, 3):
        state.save(model, step, {"step": step}, {"random/a": np.arange(3), "BestWeights_1/0": np.ones((2, 5))})
    state.finish()
    assert [path.name for path in state.paths()] == ["step-00000002", "step-00000003"]
    saved, other = next(state.newest_first()), small_model()
    arrays = restore(other, saved)
    assert saved.notes == {"step": 3}
    np.testing.assert_array_equal(arrays["random/a"], np.arange(3))
    np.testing.assert_array_equal(arrays["BestWeights_1/0"], np.ones((2, 5)))
    for one, expected in zip(values_of(other), values_of(model), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.full
@of_jax
def test_no_changed_bit_of_a_directory_is_trained_on(tmp_path):
    """Of each file in turn, also those of values, for which Orbax has no checksums."""
    state, model = in_directories(tmp_path), small_model()
    state.save(model, 1)
    state.finish()
    expected, damaged = values_of(model), 0
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for place in (len(content) // 3, len(content) // 2):
            changed = bytearray(content)
            changed[place] ^= 1
            path.write_bytes(changed)
            other = small_model()
            try:
                restore(other, ShardedState(tmp_path / "step-00000001"))
            except ValueError as error:
                damaged += isinstance(error, DamagedState)
            else:
                for one, value in zip(values_of(other), expected, strict=True):
                    np.testing.assert_array_equal(one, value, err_msg=f"{path}, byte {place}")
        path.write_bytes(content)
    assert damaged > 0


@of_jax
def test_a_checksum_sees_a_bit_and_an_exchange_of_two_values():
    first = np.arange(35, dtype="float32").reshape(5, 7)
    exchanged = first.copy()
    exchanged[[0, 1]] = exchanged[[1, 0]]
    other = first.copy()
    other.view("uint32")[2, 3] ^= 1
    assert len(set(checksums([jax_array(one) for one in (first, exchanged, other, first.T)]))) == 4
    assert checksums([jax_array(first)]) == checksums([jax_array(first.copy())])


@of_jax
def test_a_save_that_was_killed_leaves_what_was_there(tmp_path):
    state, model = in_directories(tmp_path), small_model()
    state.save(model, 1)
    state.finish()
    (tmp_path / "step-00000002.orbax-checkpoint-tmp").mkdir()
    assert read_last(tmp_path)[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


@of_jax
def test_a_directory_of_a_newer_step_goes_before_a_file(tmp_path):
    model, one, several = small_model(), TrainingState(tmp_path), in_directories(tmp_path)
    one.save(model, 1)
    several.save(model, 2)
    several.finish()
    assert read_last(tmp_path)[0] == 2
    one.save(model, 3)
    assert [path.name for path in one.paths()] == ["step-00000002", "step-00000003.npz"]


@on("tensorflow", "torch")  # JAX saves there by Orbax
def test_a_remote_directory_is_refused_where_it_cannot_be_written():
    with pytest.raises(ValueError, match=r"gs://bucket/run is remote, and .* saves training states only to local"):
        TrainingState("gs://bucket/run")
