import keras
import numpy as np
import pytest
from keras import ops
from tiers import every_backend, full_but, on, three_in_full

from keras_bert_impl import BertEncoder, Pretrainer
from keras_bert_impl.kernels.adamw import rounded
from keras_bert_impl.optimization import (
    BertAdamW,
    BertLamb,
    BertStableAdamW,
    MovableDecay,
    WarmupLinearDecay,
    WarmupStableDecay,
    clip_to_norm,
    layer_rates,
)

pytestmark = three_in_full


def test_the_rate_rises_over_warmup_and_falls_to_zero_at_the_end():
    schedule = WarmupLinearDecay(peak=0.6, warmup_steps=3, total_steps=7)
    rates = [float(schedule(step)) for step in range(9)]
    np.testing.assert_allclose(rates, [0.2, 0.4, 0.6, 0.6, 0.45, 0.3, 0.15, 0, 0], atol=1e-6)


def test_a_stable_rate_falls_by_the_square_root_at_the_end():
    schedule = WarmupStableDecay(peak=0.6, warmup_steps=2, total_steps=9, decay_steps=4)
    rates = [float(schedule(step)) for step in range(11)]
    falling = [0.6 * (1 - share**0.5) for share in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(rates, [0.3, 0.6, 0.6, 0.6, 0.6, 0.6, *falling, 0, 0], atol=1e-6)
    assert WarmupStableDecay.from_config(schedule.get_config()).get_config() == schedule.get_config()
    for decay_steps in (0, 8):
        with pytest.raises(ValueError, match=f"decay_steps {decay_steps} "):
            WarmupStableDecay(0.6, 2, 9, decay_steps)


def test_a_stable_step_is_smaller_where_the_gradient_is_larger_than_expected():
    """Against the definition (Wortsman et al. 2023, algorithm 2) in NumPy, weight by weight, over steps of which one
    has a gradient a hundred times as large."""
    random = np.random.default_rng(0)
    shapes, rate, decay, beta_1, beta_2, epsilon = ((3, 4), (5,)), 0.1, 0.02, 0.9, 0.98, 1e-6
    values = [random.normal(size=shape) for shape in shapes]
    weights = [named(path, value) for path, value in zip(("a/kernel", "b/kernel"), values, strict=True)]
    optimizer = BertStableAdamW(rate, weight_decay=decay)
    first, second = ([np.zeros(shape) for shape in shapes] for _ in range(2))
    ratios = []
    for step in range(1, 6):
        gradients = [random.normal(size=shape) * (100 if step == 4 else 1) for shape in shapes]
        optimizer.apply([keras.ops.convert_to_tensor(one.astype("float32")) for one in gradients], weights)
        for place, gradient in enumerate(gradients):
            first[place] = beta_1 * first[place] + (1 - beta_1) * gradient
            second[place] = beta_2 * second[place] + (1 - beta_2) * gradient**2
            corrected = second[place] / (1 - beta_2**step)
            ratios.append(np.sqrt(np.mean(gradient**2 / np.maximum(corrected, epsilon**2))))
            slower = rate / max(1, ratios[-1])
            update = first[place] / (1 - beta_1**step) / (np.sqrt(corrected) + epsilon)
            values[place] = values[place] * (1 - slower * decay) - slower * update
    assert max(ratios) > 1.5 and min(ratios) < 1.01
    for weight, value in zip(weights, values, strict=True):
        np.testing.assert_allclose(numpy(weight), value, rtol=1e-4, atol=1e-5)


def test_warmup_as_long_as_the_run_is_refused():
    for warmup_steps in (7, -1):
        with pytest.raises(ValueError, match=f"warmup_steps {warmup_steps} "):
            WarmupLinearDecay(0.1, warmup_steps, 7)


def test_steps_are_counted_exactly_also_where_keras_default_is_half_precision():
    before = keras.config.floatx()
    keras.config.set_floatx("bfloat16")  # which cannot represent 257
    try:
        assert float(WarmupLinearDecay(1.0, 0, 1000)(257)) == pytest.approx(0.743)
    finally:
        keras.config.set_floatx(before)


def test_the_defaults_are_those_of_the_papers():
    shared = {"weight_decay": 0.01, "global_clipnorm": 1.0, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6}
    adamw = {**shared, "learning_rate": 5e-5, "layer_decay": 1.0, "bias_correction": True, "name": "bert_adamw"}
    lamb = {**shared, "learning_rate": 1e-3, "name": "bert_lamb"}
    for optimizer, expected in ((BertAdamW(), adamw), (BertLamb(), lamb)):
        config = optimizer.get_config()
        assert {key: config[key] for key in expected} == pytest.approx(expected)
        assert optimizer.epsilon == 1e-6 and optimizer.beta_2 == 0.999


def named(path, values, dtype="float32"):
    """A variable of the path `scope/name`, or `name`."""
    scope, _, name = path.rpartition("/")
    with keras.name_scope(scope or "model"):
        return keras.Variable(np.array(values, "float32"), dtype=dtype, name=name)


def tensor(values, dtype="float32"):
    return keras.ops.cast(np.array(values, "float32"), dtype)


def numpy(values):
    return keras.ops.convert_to_numpy(keras.ops.cast(values, "float32"))


def test_an_end_that_is_moved_lets_the_rate_go_on_from_where_it_is_to_zero_there():
    """Of 7 steps, the last 4 lower the rate by 0.15 each. Half-way down, the end is moved: 1 or 4 steps are left."""
    for total, expected in (6, [0.3, 0, 0]), (9, [0.3, 0.225, 0.15, 0.075, 0, 0]):
        schedule = MovableDecay(peak=0.6, warmup_steps=3, total_steps=7)
        assert [float(schedule(step)) for step in range(3)] == [
            float(WarmupLinearDecay(0.6, 3, 7)(step)) for step in range(3)
        ]
        schedule.move_end(5, total)
        np.testing.assert_allclose([float(schedule(step)) for step in range(5, total + 2)], expected, atol=1e-6)
    # The end is moved while the rate still rises, where each step then rises half as much, and then a second time.
    schedule = MovableDecay(peak=0.6, warmup_steps=4, total_steps=8)
    schedule.move_end(2, 14)
    np.testing.assert_allclose([float(schedule(step)) for step in (2, 3, 4, 14)], [0.45, 0.525, 0.6, 0], atol=1e-6)
    schedule.move_end(10, 11)
    np.testing.assert_allclose([float(schedule(step)) for step in (10, 11)], [0.3, 0], atol=1e-6)


def test_a_moved_end_is_a_part_of_the_optimizer_s_state():
    schedules = [MovableDecay(0.6, 3, 7) for _ in range(2)]
    optimizers = [optimizer(schedule) for optimizer, schedule in zip((BertAdamW, BertLamb), schedules, strict=True)]
    for optimizer, schedule in zip(optimizers, schedules, strict=True):
        optimizer.build([keras.Variable(np.zeros(2, "float32"), name="kernel")])
        assert any(variable is schedule.pace for variable in optimizer.variables)
    assert MovableDecay.from_config(schedules[0].get_config()).get_config() == schedules[0].get_config()


@every_backend
@pytest.mark.parametrize(("beta_1", "beta_2"), full_but([(0.9, 0.999), (0.8, 0.97)], (0.8, 0.97)))
def test_updates_are_those_of_torch_also_of_gradients_near_epsilon(beta_1, beta_2):
    torch = pytest.importorskip("torch")
    gradients = np.random.default_rng(0).normal(size=(5, 7, 3)).astype("float32") * np.float32([1, 1e-4, 1e-6])
    start = np.random.default_rng(1).normal(size=(7, 3)).astype("float32")
    ours, theirs = keras.Variable(start, name="kernel"), torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer = BertAdamW(0.01, beta_1=beta_1, beta_2=beta_2)
    reference = torch.optim.AdamW([theirs], lr=0.01, betas=(beta_1, beta_2), weight_decay=0.01, eps=1e-6)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [ours])
        theirs.grad = torch.from_numpy(gradient.copy())
        torch.nn.utils.clip_grad_norm_([theirs], 1.0)
        reference.step()
    np.testing.assert_allclose(keras.ops.convert_to_numpy(ours), theirs.detach().numpy(), atol=1e-6)


def test_gradients_are_clipped_to_a_global_norm_of_one():
    weights = [keras.Variable(np.zeros(1, "float32"), name=name) for name in ("first", "second")]
    optimizer = BertAdamW(0.5)
    gradients = [keras.ops.convert_to_tensor(np.array([value], "float32")) for value in (30.0, 40.0)]
    optimizer.apply(gradients, weights)
    # The joint norm is 50; a first moment is (1 - 0.9) times the clipped gradient.
    moments = [float(variable[0]) for variable in optimizer.variables if "momentum" in variable.path]
    np.testing.assert_allclose(moments, [0.06, 0.08], rtol=1e-5)
    assert float(optimizer.gradient_norm.value) == pytest.approx(50)
    assert optimizer.gradient_norm.name == "gradient_norm"


def test_gradients_below_the_norm_stay_and_clipped_ones_keep_their_type():
    norm = keras.Variable(0.0)
    gradients = [tensor([3.0, 0.0]), tensor([0.0, 4.0], "bfloat16")]
    for most, factor in ((5.0, 1.0), (6.0, 1.0), (2.5, 0.5), (None, 1.0)):
        clipped = clip_to_norm(gradients, most, norm)
        np.testing.assert_allclose([numpy(each) for each in clipped], [[3 * factor, 0], [0, 4 * factor]], rtol=1e-6)
        assert [keras.backend.standardize_dtype(each.dtype) for each in clipped] == ["float32", "bfloat16"]
        assert float(norm.value) == pytest.approx(5.0)


@pytest.mark.parametrize("optimizer_class", [BertAdamW, BertLamb])
def test_a_weight_without_gradient_stays_and_does_not_count(optimizer_class):
    weights = [named(name, [3.0, 4.0]) for name in ("first/kernel", "second/kernel")]
    optimizer = optimizer_class(0.1, weight_decay=0.0)
    optimizer.apply([None, tensor([0.3, 0.4])], weights)
    np.testing.assert_array_equal(numpy(weights[0]), [3, 4])
    assert (numpy(weights[1]) < [3, 4]).all()
    assert float(optimizer.gradient_norm.value) == pytest.approx(0.5)


@pytest.mark.parametrize("optimizer_class", [BertAdamW, BertLamb])
def test_weights_of_half_precision_move_as_others_do(optimizer_class, dtype="bfloat16"):
    # Both move a bias by rate * sign at first, and 1.5 and -2.5 are exact in half precision. 0.999 is not: it is 1.
    weight = named("dense/bias", [2.0, -3.0], dtype)
    optimizer_class(0.5).apply([tensor([0.25, -0.5])], [weight])
    assert keras.backend.standardize_dtype(weight.dtype) == dtype
    np.testing.assert_allclose(numpy(weight), [1.5, -2.5], rtol=0.01)


def decayed(model):
    """Names of the weights that an update changes although all gradients are zero."""
    weights = model.trainable_variables
    before = [keras.ops.convert_to_numpy(weight).copy() for weight in weights]
    model.optimizer.apply([keras.ops.zeros(weight.shape) for weight in weights], weights)
    pairs = zip(weights, before, strict=True)
    return {weight.path for weight, old in pairs if (keras.ops.convert_to_numpy(weight) != old).any()}


def small_model():
    dense = keras.layers.Dense(3, bias_initializer="ones", name="dense")
    model = keras.Sequential([keras.Input((2,)), dense, keras.layers.LayerNormalization(name="norm")])
    model.compile(optimizer=BertAdamW(0.1, weight_decay=0.5), loss="mse")
    return model


@every_backend
def test_moments_of_bfloat16_are_rounded_to_a_neighbour_and_keep_their_mean():
    values = np.array([0.3, -1.7e-5, 1.0, -2.0, 0.0, 3e38, np.inf], "float32")
    found = np.stack([ops.convert_to_numpy(ops.cast(rounded(values, salt), "float32")) for salt in range(1000)])
    short = found.view("uint32") & 0xFFFF
    assert not short.any() and (np.abs(found[:, :6] - values[:6]) <= np.abs(values[:6]) / 128).all()
    # A share p of 1,000 has a standard deviation of 0.016, hence their mean one of 0.016 of the distance of neighbours.
    np.testing.assert_allclose(found[:, :2].mean(axis=0), values[:2], rtol=0.05 / 128)
    np.testing.assert_array_equal(found[:, 2:5], np.broadcast_to(values[2:5], (1000, 3)))
    assert np.isnan(ops.convert_to_numpy(ops.cast(rounded(np.array([np.nan, -np.nan], "float32"), 5), "float32"))).all()


def test_a_second_moment_of_bfloat16_falls_where_gradients_are_zero():
    """1 - beta_2 is less than half of bfloat16's last digit: rounded to the nearest, it would stay for ever."""
    optimizer = BertAdamW(0.0, beta_2=0.999, global_clipnorm=None, moments="bfloat16")
    weight = keras.Variable(np.zeros(500, "float32"), name="kernel")
    optimizer.build([weight])
    second = optimizer.second_moments[0]
    second.assign(before := np.linspace(0.5, 2.0, 500))
    for _ in range(300):
        optimizer.apply([np.zeros(500, "float32")])
    kept = ops.convert_to_numpy(ops.cast(second, "float32")) / before
    assert kept.mean() == pytest.approx(0.999**300, rel=0.01) and kept.std() < 0.1


@pytest.mark.parametrize("kind", [BertAdamW, BertStableAdamW])
def test_moments_of_bfloat16_move_weights_of_float32_nearly_alike(kind):
    draw = np.random.default_rng(0)
    gradients = draw.normal(size=(20, 400)).astype("float32")
    found = {}
    for moments in ("float32", "bfloat16"):
        weight = keras.Variable(np.zeros(400, "float32"), name="kernel")
        optimizer = kind.from_config(kind(1e-2, moments=moments).get_config())
        for gradient in gradients:
            optimizer.apply([gradient], [weight])
        kinds = {
            keras.backend.standardize_dtype(each.dtype) for each in optimizer.first_moments + optimizer.second_moments
        }
        assert kinds == {moments} and keras.backend.standardize_dtype(weight.dtype) == "float32"
        found[moments] = ops.convert_to_numpy(weight)
    difference = found["bfloat16"] - found["float32"]
    assert 0 < np.abs(difference).max() < 0.01 and abs(difference.mean()) < 5e-4 < np.abs(found["float32"]).mean()


def test_weight_decay_skips_biases_and_norms_also_after_reloading(tmp_path):
    small_model().save(tmp_path / "model.keras")
    for model in (small_model(), keras.saving.load_model(tmp_path / "model.keras")):
        kernel = model.get_layer("dense").kernel
        before = keras.ops.convert_to_numpy(kernel).copy()
        assert decayed(model) == {kernel.path}
        np.testing.assert_allclose(keras.ops.convert_to_numpy(kernel), before * (1 - 0.1 * 0.5), rtol=1e-5)


def test_weight_decay_reaches_every_kernel_and_table_of_bert(small_config):
    pretrainer = Pretrainer(BertEncoder(small_config))
    pretrainer.set_weights([np.ones(weight.shape) for weight in pretrainer.weights])
    pretrainer.compile(optimizer=BertAdamW(0.1, weight_decay=0.5))
    ends = {path.rsplit("/", 1)[1] for path in decayed(pretrainer)}
    assert ends == {"kernel", "embeddings"}


def test_the_schedule_survives_a_keras_file(tmp_path):
    model = small_model()
    model.compile(optimizer=BertAdamW(WarmupLinearDecay(0.6, 3, 7)), loss="mse")
    model.save(tmp_path / "model.keras")
    schedule = keras.saving.load_model(tmp_path / "model.keras").optimizer.get_config()["learning_rate"]["config"]
    assert schedule == {"peak": 0.6, "warmup_steps": 3, "total_steps": 7}


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_the_first_updates_fall_with_the_layers_and_their_weight_decay_does_not(decay):
    paths = ["token_embedding/embeddings", "block_0/kernel", "block_1/kernel", "pooler/kernel"]
    weights = [named(path, [2.0]) for path in paths]
    gradients = [tensor([0.3])] * 4
    BertAdamW(0.1, weight_decay=decay, layer_decay=0.5, epsilon=1e-9).apply(gradients, weights)
    kept = 2.0 * (1 - 0.1 * decay)
    expected = [[kept - 0.1 * rate] for rate in (0.25, 0.5, 1.0, 1.0)]
    np.testing.assert_allclose([numpy(weight) for weight in weights], expected, rtol=1e-5)


def test_the_embeddings_of_bert_learn_slowest_pooler_and_top_block_fastest(small_config):
    paths = [weight.path for weight in BertEncoder(small_config).trainable_variables]
    rates = dict(zip([path.split("/")[0] for path in paths], layer_rates(paths, 0.5), strict=True))
    below = dict.fromkeys(["token_embedding", "position_embedding", "segment_embedding", "embeddings_norm"], 0.25)
    assert rates == {**below, "block_0": 0.5, "block_1": 1.0, "pooler": 1.0}
    assert layer_rates(["block_10/kernel", "block_2/kernel", "head/kernel"], 0.5) == [1.0, 2.0**-8, 1.0]


def test_lamb_moves_a_weight_of_zero_as_adam_does_and_leaves_one_without_update():
    weights = [named("dense/kernel", [0.0, 0.0]), named("other/kernel", [3.0, 4.0])]
    optimizer = BertLamb(0.1, epsilon=1e-9, weight_decay=0.0)
    optimizer = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    optimizer.apply([tensor([0.3, -0.4]), tensor([0.0, 0.0])], weights)
    np.testing.assert_allclose([numpy(weight) for weight in weights], [[-0.1, 0.1], [3, 4]], rtol=1e-5)


def lamb_by_the_paper(weight, gradients, rate, decay, beta_1, beta_2, epsilon, plain=False):
    """Algorithm 2 of You et al. 2020 in double precision, with the identity for phi."""
    first = second = np.zeros(len(weight))
    for step, gradient in enumerate(gradients, start=1):
        first = beta_1 * first + (1 - beta_1) * gradient
        second = beta_2 * second + (1 - beta_2) * gradient**2
        update = first / (1 - beta_1**step) / (np.sqrt(second / (1 - beta_2**step)) + epsilon)
        if not plain:
            update = update + decay * weight
            update = update * np.linalg.norm(weight) / np.linalg.norm(update)
        weight = weight - rate * update
    return weight


def test_lamb_is_the_papers_algorithm_and_adam_for_biases_and_norms():
    gradients = np.random.default_rng(2).normal(size=(5, 3))
    # Updates of a norm above 1, and with the large epsilon far below it.
    for epsilon, start in ((1e-6, [3.0, 4.0, -2.0]), (9.0, [0.03, -0.2, 0.01])):
        paths = [f"norm/{name}" for name in ("kernel", "bias", "output_bias", "gamma", "beta")]
        weights = [named(path, start) for path in paths]
        options = {"beta_1": 0.8, "beta_2": 0.97, "epsilon": epsilon}
        optimizer = BertLamb(0.1, weight_decay=0.3, global_clipnorm=None, **options)
        for gradient in gradients:
            optimizer.apply([tensor(gradient)] * 5, weights)
        moved = lamb_by_the_paper(np.array(start), gradients, 0.1, 0.3, **options)
        plain = lamb_by_the_paper(np.array(start), gradients, 0.1, 0.3, **options, plain=True)
        np.testing.assert_allclose([numpy(weight) for weight in weights], [moved] + [plain] * 4, rtol=1e-4)


@pytest.mark.parametrize(("argument", "value"), [("clipnorm", 0.5), ("clipvalue", 0.5), ("amsgrad", True)])
def test_arguments_of_keras_that_the_update_does_not_have_are_refused(argument, value):
    with pytest.raises(ValueError, match=f"BertAdamW does not take {argument}={value}"):
        BertAdamW(1e-3, global_clipnorm=None, **{argument: value})


@pytest.mark.parametrize("optimizer_class", [BertAdamW, BertLamb])
def test_weights_excluded_by_name_do_not_decay(optimizer_class):
    weights = [keras.Variable(np.array([3.0, 4.0], "float32"), name=name) for name in ("kernel", "gate")]
    optimizer = optimizer_class(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["gate"])
    optimizer.apply([keras.ops.zeros(2), keras.ops.zeros(2)], weights)
    kernel, gate = (keras.ops.convert_to_numpy(weight) for weight in weights)
    np.testing.assert_array_equal(gate, [3, 4])
    assert (kernel < [3, 4]).all()


@pytest.mark.parametrize("optimizer_class", [BertAdamW, BertLamb])
def test_accumulated_gradients_move_a_weight_by_their_mean(optimizer_class):
    weights = [keras.Variable(np.array([3.0, 4.0], "float32"), name="kernel") for _ in range(2)]
    gradients = [np.array(values, "float32") for values in ([0.2, 0.4], [0.6, -0.2])]
    in_two = optimizer_class(0.1, gradient_accumulation_steps=2)
    for gradient in gradients:
        in_two.apply([keras.ops.convert_to_tensor(gradient)], weights[:1])
    optimizer_class(0.1).apply([keras.ops.convert_to_tensor(np.mean(gradients, axis=0))], weights[1:])
    found, expected = (keras.ops.convert_to_numpy(weight) for weight in weights)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_backend
@pytest.mark.parametrize("optimizer_class", full_but([BertAdamW, BertLamb], BertAdamW))
def test_the_average_of_the_weights_counts_updates_and_not_accumulated_steps(optimizer_class):
    weight = named("dense/kernel", [3.0, 4.0])
    optimizer = optimizer_class(0.1, use_ema=True, ema_momentum=0.5, gradient_accumulation_steps=2)
    after = []
    for gradient in ([0.2, 0.4], [0.6, -0.2], [-0.3, 0.1], [0.5, 0.5], [-0.9, 0.2], [0.1, -0.3]):
        optimizer.apply([tensor(gradient)], [weight])
        after.append(numpy(weight).copy())
    optimizer.finalize_variable_values([weight])
    np.testing.assert_allclose(numpy(weight), ((after[1] + after[3]) / 2 + after[5]) / 2, rtol=1e-6)


@on("jax")  # elsewhere Keras computes an update only when it is due
def test_an_update_is_computed_only_when_it_is_due():
    import jax

    weight = named("dense/kernel", np.ones((3, 5)))
    optimizer = BertAdamW(0.1, gradient_accumulation_steps=2)
    optimizer.build([weight])
    state = [variable.value for variable in optimizer.variables]
    program = jax.make_jaxpr(optimizer.stateless_apply)(state, [np.ones((3, 5), "float32")], [weight.value])
    outside = [one for one in program.eqns if any(out.aval.shape == (3, 5) for out in one.outvars)]
    assert {one.primitive.name for one in outside} == {"cond"}


def test_accumulation_is_refused_where_gradients_are_added_up_over_replicas(monkeypatch):
    monkeypatch.setattr("keras_bert_impl.optimization.adds_up_replicas", lambda: True)
    with pytest.raises(ValueError, match="gradient_accumulation_steps=2 does not work"):
        BertAdamW(gradient_accumulation_steps=2)
    BertAdamW()


def test_without_bias_correction_it_is_google_s_optimizer():
    """AdamWeightDecayOptimizer of google-research/bert, optimization.py: m / (sqrt(v) + epsilon) + decay * w."""
    weights, gradients = np.array([1.0, -2.0, 0.5]), np.array([[0.1, -0.2, 0.0], [0.3, 0.1, -0.1], [0.0, 0.2, 0.4]])
    variable = named("kernel", weights)
    optimizer = BertAdamW(0.1, weight_decay=0.01, global_clipnorm=None, bias_correction=False)
    optimizer = BertAdamW.from_config(optimizer.get_config())
    first, second = np.zeros(3), np.zeros(3)
    for gradient in gradients:
        optimizer.apply([tensor(gradient)], [variable])
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        weights = weights - 0.1 * (first / (np.sqrt(second) + 1e-6) + 0.01 * weights)
        np.testing.assert_allclose(numpy(variable), weights, atol=1e-5)


@pytest.mark.parametrize(("kind", "steps"), [(BertAdamW, None), (BertStableAdamW, None), (BertLamb, 2)])
def test_a_follower_is_its_leader_and_a_difference_that_is_trained_alone(kind, steps):
    random = np.random.default_rng(0)
    start, apart = random.normal(size=(2, 4, 3)).astype("float32")
    gradients = random.normal(size=(4, 2, 4, 3)).astype("float32")
    results = []
    for is_follower in (True, False):
        variables = [keras.Variable(start), keras.Variable(start + apart if is_follower else apart)]
        optimizer = kind(0.1, weight_decay=0.1, global_clipnorm=1e6, gradient_accumulation_steps=steps)
        optimizer.build(variables)
        if is_follower:
            optimizer.let_follow(*variables)
            assert not {id(one) for one in optimizer.variables} & {id(one) for one in variables}
        for pair in gradients:
            optimizer.apply([keras.ops.convert_to_tensor(one) for one in pair], variables)
        results.append([keras.ops.convert_to_numpy(variable) for variable in variables])
    (leader, follower), (alone, difference) = results
    assert np.abs(leader - start).max() > 0.05 and np.abs(difference - apart).max() > 0.05
    np.testing.assert_allclose(leader, alone, atol=1e-6)
    np.testing.assert_allclose(follower - leader, difference, atol=1e-5)
