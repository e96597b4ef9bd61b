"""What the last saved state of a training holds, without a model."""

import numpy as np

from keras_bert_impl.callbacks.saved_states import FileState, TrainingState, step_of
from keras_bert_impl.callbacks.sharded_state import numbered


def read_last(directory):
    """(step, arrays, notes) of the last intact state; None without any."""
    state = next(TrainingState(directory).newest_first(), None)
    return None if state is None else (step_of(state.path), all_arrays(state), state.notes)


def all_arrays(state):
    """Every array that was saved, whole, as "group/place" and "more/name"."""
    if isinstance(state, FileState):
        return {name: state.file[name] for name in state.file.files if name != "notes"}
    import orbax.checkpoint as ocp

    found = {f"more/{name}": array for name, array in state.arrays().items()}
    for group, shapes in state.manifest["shapes"].items():
        kinds = numbered([ocp.RestoreArgs(restore_type=np.ndarray)] * len(shapes))
        read = ocp.args.PyTreeRestore(item=numbered([0] * len(shapes)), restore_args=kinds)
        found |= {f"{group}/{place}": array for place, array in state._restored(group, read).items()}
    return found
