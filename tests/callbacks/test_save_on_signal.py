"""A process that is asked to end saves its training first."""

import os
import signal

import keras
import pytest
from made_fits import LABELS, TEXTS, assert_equal, build, fit
from saved_arrays import read_last

from keras_bert_impl.callbacks import ExactResume, SaveOnSignal


def ended_at(directory, batch, epochs=2):
    """Fits until SIGTERM arrives at this batch."""

    def terminate(number, logs):
        if number == batch:
            os.kill(os.getpid(), signal.SIGTERM)

    asked = keras.callbacks.LambdaCallback(on_train_batch_end=terminate)
    resume, before = ExactResume(directory, every_minutes=None), signal.getsignal(signal.SIGTERM)
    callbacks = [SaveOnSignal(resume), resume, asked]
    with pytest.raises(SystemExit) as ended:
        build().fit(TEXTS, LABELS, batch_size=3, epochs=epochs, verbose=0, callbacks=callbacks)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == before, "the handler from before is there again"


def test_the_step_is_saved_and_the_fit_goes_on_from_it(tmp_path, capsys):
    ended_at(tmp_path / "broken", 2)
    assert read_last(tmp_path / "broken")[0] == 3
    assert "Asked to end: step 3 is saved" in capsys.readouterr().out
    assert_equal(fit(tmp_path / "broken", epochs=2), fit(tmp_path / "whole", epochs=2))


def test_at_the_last_batch_of_an_epoch_what_follows_it_is_done_first(tmp_path):
    ended_at(tmp_path, 4)
    step, _, notes = read_last(tmp_path)
    assert step == 5 and notes["epoch"] == 1 and notes["done"] == 0


def test_a_fit_that_fails_leaves_the_signal_as_it_was(tmp_path):
    resume, before = ExactResume(tmp_path, every_minutes=None), signal.getsignal(signal.SIGTERM)

    def fail(number, logs):
        assert signal.getsignal(signal.SIGTERM) != before
        raise OSError("the disk is full")

    failing = keras.callbacks.LambdaCallback(on_train_batch_end=fail)
    with pytest.raises(OSError, match="the disk is full"):
        build().fit(TEXTS, LABELS, batch_size=3, verbose=0, callbacks=[SaveOnSignal(resume), resume, failing])
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.fixture
def with_ctrl_c():
    """Ctrl-C as in a terminal: a program in the background of a shell begins with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(directory, *interruptions, callbacks=()):
    """Fits; Ctrl-C arrives at the end of these batches."""

    def interrupt(number, logs):
        if number in interruptions:
            os.kill(os.getpid(), signal.SIGINT)

    asked = keras.callbacks.LambdaCallback(on_train_batch_end=interrupt)
    resume, before = ExactResume(directory, every_minutes=None), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        callbacks = [*callbacks, SaveOnSignal(resume), resume, asked]
        build().fit(TEXTS, LABELS, batch_size=3, epochs=2, verbose=0, callbacks=callbacks)
    assert signal.getsignal(signal.SIGINT) == before, "the handler from before is there again"


def test_ctrl_c_saves_the_step(with_ctrl_c, tmp_path, capfd):
    interrupted(tmp_path / "broken", 2)
    assert read_last(tmp_path / "broken")[0] == 3
    printed = capfd.readouterr()
    assert "Ctrl-C again ends at once" in printed.err and "Asked to end: step 3 is saved" in printed.out


def test_a_second_ctrl_c_ends_before_the_state_is_saved(with_ctrl_c, tmp_path):
    class Impatient(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    interrupted(tmp_path, callbacks=[Impatient()])
    assert read_last(tmp_path) is None


def test_without_its_exact_resume_it_is_refused(tmp_path):
    with pytest.raises(ValueError, match="pass that one to fit as well"):
        build().fit(TEXTS, LABELS, verbose=0, callbacks=[SaveOnSignal(ExactResume(tmp_path))])
