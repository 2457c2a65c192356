"""The numerical contract, held by running scripts on data with known answers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import reference
from combinations import STYLES
from harness import drive, run_script

from generator import TrainingSpec
from generator.catalog import MODES

# One epoch of seven uneven micro-batches: with N = 3, windows of 3, 3 and 1.
SIZES = [4, 4, 3, 4, 4, 2, 1]
# float32 against float64 over six updates; seen: 1.5e-7 for weights of size 1.
RELATIVE = 1e-6


def assert_close(found: dict, wanted: dict, bound: float = RELATIVE) -> None:
    """Weights agree to ``bound`` relative to the largest of each parameter."""
    for name, value in wanted.items():
        error = np.abs(found[name] - value).max() / np.abs(value).max()
        assert error <= bound, (name, error)


def moved(driven) -> bool:
    return any((driven.after[n] != driven.before[n]).any() for n in driven.before)


@pytest.mark.parametrize(("style", "mode"), [*itertools.product(STYLES, MODES)])
def test_window_equals_batch_and_partial_windows_count_for_themselves(
    tmp_path, style, mode
):
    cases = [
        {"sizes": SIZES, "epochs": 2},
        {"sizes": [5, 2]},  # an epoch shorter than the window
        {"sizes": [4, 4, 4]},
        {"sizes": SIZES, "epochs": 2, "max_updates": 4},
    ]
    for scale in ("none", "dynamic"):
        spec = TrainingSpec(
            style=style, mode=mode, accum=3, loss_scale=scale, optimizer="momentum"
        )
        driven = drive(spec, tmp_path / scale, cases)
        for case, result in zip(cases, driven, strict=True):
            weights, losses = reference.train(
                case["sizes"], 3, epochs=case.get("epochs", 1), momentum=0.9
            )
            count = case.get("max_updates", len(losses))
            assert len(result.windows) == count
            if count == len(losses):
                assert_close(result.after, weights)
            shown = [window["loss"] for window in result.windows]
            assert shown == pytest.approx(losses[:count], rel=2e-6)
        held = [(w["micro_batches"], w["items"]) for w in driven[0].windows]
        assert held == [(3, 11), (3, 10), (1, 1)] * 2
        assert [(w["micro_batches"], w["items"]) for w in driven[1].windows] == [(2, 7)]


@pytest.mark.parametrize(("style", "mode"), [*itertools.product(STYLES, MODES)])
@pytest.mark.parametrize("scale", ["fixed", "dynamic"])
def test_an_overflow_drops_its_window_and_nothing_else(tmp_path, style, mode, scale):
    """Planted in the first, the last, several and all micro-batches of a window."""
    plants = [{"3": math.inf}, {"5": -math.inf}, {"3": math.nan, "4": math.inf}]
    cases = [{"sizes": SIZES, "epochs": 2, "plant": plant} for plant in plants]
    cases.append(
        {"sizes": SIZES, "epochs": 2, "plant": {str(i): math.inf for i in (3, 4, 5)}}
    )
    spec = TrainingSpec(
        style=style,
        mode=mode,
        accum=3,
        loss_scale=scale,
        loss_scale_window=2 if scale == "dynamic" else None,
        loss_scale_value=1024,
        optimizer="momentum",
        lr_schedule="cosine",
    )
    for driven in drive(spec, tmp_path, cases):
        weights, losses = scheduled_reference(skipped=1)
        assert_close(driven.after, weights)
        windows = driven.windows
        assert [w["skipped"] for w in windows] == [False, True] + [False] * 4
        assert [w["updates"] for w in windows] == [1, 1, 2, 3, 4, 5]
        # The rate follows the updates: the window after the dropped one has its rate.
        rates = [w["lr"] for w in windows]
        assert rates[2] == rates[1] and len(set(rates)) == 5
        scales = [w["loss_scale"] for w in windows]
        if scale == "fixed":
            assert scales == [1024] * 6
        else:  # halved once by the dropped window, doubled after two good ones
            assert scales == [1024, 1024, 512, 512, 1024, 1024]
        shown = [w["loss"] for w in windows]
        assert shown[:1] + shown[2:] == pytest.approx(losses[:1] + losses[2:], rel=2e-6)


def scheduled_reference(skipped: int):
    """Momentum over two epochs of SIZES with a cosine of six updates, one dropped."""
    current = {k: v.astype(np.float64) for k, v in reference.weights().items()}
    velocity = {k: np.zeros_like(v) for k, v in current.items()}
    batches, losses, update = reference.micro_batches(SIZES), [], 0
    for number, window in enumerate(reference.windows(SIZES, 3) * 2):
        data = np.concatenate([batches[i][0] for i in window])
        label = np.concatenate([batches[i][1] for i in window])
        loss, gradient = reference.loss_and_gradient(current, data, label)
        losses.append(loss)
        if number != skipped:
            lr = 0.1 * (1 + math.cos(math.pi * update / 6)) / 2
            for name, g in gradient.items():
                velocity[name] = 0.9 * velocity[name] + g
                current[name] = current[name] - lr * velocity[name]
            update += 1
    return current, losses


@pytest.mark.parametrize("style", STYLES)
def test_a_dropped_window_leaves_no_trace_in_running_statistics(tmp_path, style):
    (tmp_path / "net.py").write_text(NORM_NETWORK)
    from generator.spec import SourceRef

    for accum, amp in ((1, "O2"), (3, "O0")):
        spec = TrainingSpec(
            style=style,
            accum=accum,
            amp=amp,
            loss_scale="dynamic",
            optimizer="sgd",
            model=SourceRef(str(tmp_path / "net.py"), "Net"),
            script=str(tmp_path / "train.py"),
        )
        last = 3 * accum - 1  # a dropped window at the end of the epoch
        case = {"sizes": [4] * 3 * accum, "network": "norm"}
        folder = tmp_path / f"accum{accum}"
        folder.mkdir()
        (folder / "net.py").write_text(NORM_NETWORK)
        good, spoilt = drive(
            spec,
            folder,
            [case | {"max_updates": 2}, case | {"plant": {str(last): math.inf}}],
        )
        assert [w["skipped"] for w in spoilt.windows] == [False, False, True]
        assert len(good.windows) == 2
        for name, value in good.after.items():
            assert np.array_equal(value, spoilt.after[name]), name


NORM_NETWORK = """from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Dense(6, 3)

    def construct(self, x):
        return self.head(self.norm(x))
"""


@pytest.mark.parametrize(("style", "accum"), [*itertools.product(STYLES, (1, 3))])
def test_scaling_changes_no_bit(tmp_path, style, accum):
    """Property 8, and the shown loss is the same whatever the scale (property 6)."""
    results = []
    for scale in ("none", "fixed", "dynamic"):
        spec = TrainingSpec(
            style=style,
            accum=accum,
            loss_scale=scale,
            loss_scale_window=2 if scale == "dynamic" else None,
            optimizer="momentum",
        )
        results += drive(spec, tmp_path / scale, [{"sizes": SIZES, "epochs": 3}])
    none, *others = results
    assert moved(none)
    assert len({w["loss_scale"] for w in others[1].windows}) > 3  # it did grow
    for other in others:
        for name, value in none.after.items():
            assert np.array_equal(value, other.after[name]), name
        assert [w["loss"] for w in none.windows] == [w["loss"] for w in other.windows]


@pytest.mark.parametrize(("style", "mode"), [*itertools.product(STYLES, MODES)])
def test_clipping_bounds_the_update_of_a_window_once(tmp_path, style, mode):
    clip, lr = 0.05, 0.1
    for accum, scale in ((1, "none"), (3, "none"), (3, "dynamic"), (1, "fixed")):
        spec = TrainingSpec(
            style=style,
            mode=mode,
            accum=accum,
            loss_scale=scale,
            clip_norm=clip,
            optimizer="sgd",
        )
        case = {"sizes": SIZES, "max_updates": 1}
        folder = tmp_path / f"{accum}{scale}"
        one, all_ = drive(spec, folder, [case, {"sizes": SIZES}])
        change = [one.after[n].astype(float) - one.before[n] for n in one.before]
        norm = math.sqrt(sum(float((c**2).sum()) for c in change))
        assert norm == pytest.approx(lr * clip, rel=1e-5)
        weights, _ = reference.train(SIZES, accum, clip=clip)
        assert_close(all_.after, weights)


@pytest.mark.parametrize(("amp", "accum"), [*itertools.product(["O0", "O2"], (1, 3))])
def test_styles_and_modes_agree(tmp_path, amp, accum):
    found = {}
    for style, mode in itertools.product(STYLES, MODES):
        spec = TrainingSpec(
            style=style, mode=mode, amp=amp, accum=accum, optimizer="momentum"
        )
        case = {"sizes": SIZES, "epochs": 2}
        found[style, mode] = drive(spec, tmp_path / f"{style}{mode}", [case])[0]
    first = found["functional", "graph"]
    assert moved(first)
    bound = 1e-6 if amp == "O0" else 1e-3
    for driven in found.values():
        assert_close(driven.after, first.after, bound)
        losses = [w["loss"] for w in driven.windows]
        assert losses == pytest.approx([w["loss"] for w in first.windows], rel=bound)


def test_styles_shuffle_alike_and_a_seed_gives_the_same_bits(tmp_path):
    """Properties 12 and 18 on a script's own shuffled data and its own network."""
    runs = {}
    for name in ("functional", "functional again", "cell", "model"):
        style = name.split()[0]
        spec = TrainingSpec(style=style, accum=4, model="mlp", optimizer="momentum")
        run = run_script(spec, tmp_path / name, "--epochs", 2)
        runs[name] = [(w["loss"], w["items"]) for w in run.windows]
    assert runs["functional"] == runs["functional again"]
    for other in ("cell", "model"):
        assert np.allclose(runs["functional"], runs[other], rtol=1e-6)
    # Two epochs that came in the same order would repeat windows of the first.
    assert len(set(runs["functional"])) == 10


@pytest.mark.parametrize("style", STYLES)
def test_training_mode_is_set_back_after_evaluation(tmp_path, style):
    spec = TrainingSpec(style=style, optimizer="sgd")
    case = {"sizes": [4, 4], "network": "norm"}
    one, two = drive(spec, tmp_path, [case, case | {"epochs": 2}])
    assert bool(two.training)
    statistic = "norm.moving_mean"
    # Moved in both epochs, so the second ran in training mode too.
    assert not np.array_equal(one.after[statistic], two.after[statistic])
    assert not np.array_equal(one.before[statistic], one.after[statistic])


@pytest.mark.parametrize("style", STYLES)
def test_checkpoint_holds_the_weights_of_the_end(tmp_path, style):
    spec = TrainingSpec(style=style, accum=3, amp="O2", optimizer="sgd")
    (driven,) = drive(spec, tmp_path, [{"sizes": SIZES}])
    assert set(driven.checkpoint) == set(driven.before)
    for name, value in driven.checkpoint.items():
        assert np.array_equal(value, driven.after[name])


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("amp", ["O2", "auto"])
def test_the_loss_is_computed_in_float32(tmp_path, style, amp):
    """A loss computed in float16 would be a float16 number, with its 11 bits."""
    spec = TrainingSpec(style=style, amp=amp, optimizer="sgd")
    (driven,) = drive(spec, tmp_path, [{"sizes": [4] * 6, "network": "nobias"}])
    losses = np.array([window["loss"] for window in driven.windows])
    assert (losses != losses.astype(np.float16)).all()
    for name, value in driven.after.items():
        assert value.dtype == np.float32, name


def test_lr_schedules_count_updates(tmp_path):
    """Their length is epochs × ceil(M / N), warm-up included."""
    wanted = {
        "constant": lambda u: 1.0,
        "cosine": lambda u: (1 + math.cos(math.pi * (u - 2) / 4)) / 2,
        "step": lambda u: 1.0 if u < 3 else 0.1 if u < 4.5 else 0.01,
    }
    for schedule, shape in wanted.items():
        spec = TrainingSpec(
            accum=3, lr_schedule=schedule, warmup=2, optimizer="sgd", style="cell"
        )
        folder = tmp_path / schedule
        (driven,) = drive(spec, folder, [{"sizes": SIZES, "epochs": 2, "lr": 0.2}])
        rates = [0.1, 0.2] + [0.2 * shape(update) for update in range(2, 6)]
        assert [w["lr"] for w in driven.windows] == pytest.approx(rates)
