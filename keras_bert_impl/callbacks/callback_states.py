"""Saves and restores the state of callbacks together with that of the training.

A callback with a state has two methods: `get_state()` returns (a JSON value, a list of arrays), `set_state(value,
arrays)` restores them. It is saved under the callback's attribute `state_name`, by default the name of its class. For
Keras' own callbacks the attributes are listed here.
"""

import keras

# Attributes that are single numbers or None; EarlyStopping has weights, too.
OF_KERAS = {
    keras.callbacks.EarlyStopping: ("best", "wait", "best_epoch", "stopped_epoch"),
    keras.callbacks.ReduceLROnPlateau: ("best", "wait", "cooldown_counter"),
    keras.callbacks.ModelCheckpoint: ("best",),
}


def get_state(callback):
    """The state of a callback; None if it has none."""
    if hasattr(callback, "get_state"):
        return callback.get_state()
    for kind, names in OF_KERAS.items():
        if isinstance(callback, kind):
            values = {name: getattr(callback, name) for name in names}
            numbers = {name: None if value is None else float(value) for name, value in values.items()}
            return numbers, list(getattr(callback, "best_weights", None) or [])
    return None


def set_state(callback, value, arrays):
    """Restores what `get_state` returned."""
    if hasattr(callback, "set_state"):
        callback.set_state(value, arrays)
        return
    for name, number in value.items():
        is_count = name not in ("best",) and number is not None
        setattr(callback, name, int(number) if is_count else number)
    if isinstance(callback, keras.callbacks.EarlyStopping):
        callback.best_weights = arrays or None


def states_of(callbacks):
    """(the JSON values of all callbacks with a state, by their names; their arrays as "name/place")."""
    values, arrays = {}, {}
    for name, _, (value, found) in with_states(callbacks):
        values[name] = [value, len(found)]
        arrays |= {f"{name}/{place}": array for place, array in enumerate(found)}
    return values, arrays


def with_states(callbacks):
    """Yields (name, callback, state) of those that have a state; names are numbered, to tell two of a class apart."""
    names = []
    for callback in callbacks:
        state = get_state(callback)
        if state is not None:
            names.append(getattr(callback, "state_name", type(callback).__name__))
            yield f"{names[-1]}_{names.count(names[-1])}", callback, state


def restore_states(callbacks, values, arrays):
    """Restores what `states_of` returned; arrays are those saved beside the variables.

    Raises: ValueError if the callbacks with a state are not the saved ones.
    """
    found = {name: callback for name, callback, _ in with_states(callbacks)}
    if found.keys() != values.keys():
        saved, given = (", ".join(sorted(names)) or "none" for names in (values, found))
        raise ValueError(f"The saved training had the callbacks {saved}, this one has {given}: pass the same ones.")
    for name, (value, count) in values.items():
        set_state(found[name], value, [arrays[f"{name}/{place}"] for place in range(count)])
