"""The numerical contract, held by running scripts of every kind on probes.

The checks are those of ``msgen verify``; here they judge fresh scripts, and Hypothesis
thinks up runs that nobody would have written down.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from combinations import STYLES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutants import BASES, base_spec

from generator import TrainingSpec, generate
from generator.catalog import LR_SCHEDULES, MODES, OPTIMIZERS
from generator.verify import reference
from generator.verify.case import Case
from generator.verify.checks import check
from generator.verify.checks.common import (
    hold_count,
    hold_records,
    hold_values,
    long_gradients,
)
from generator.verify.contract import BY_NAME
from generator.verify.facts import Facts
from generator.verify.lab import LR, SCALE, Drivers, Lab
from generator.verify.trajectory import follow, largest_error

ALL = tuple(BY_NAME)
# Properties of the run as a whole, which take longest. The bases differ in what a
# window does, so these are not held again by each of them in both modes.
WHOLE = {"resume", "learns", "same-seed", "styles-agree"}


def names_of(base: str, mode: str) -> tuple[str, ...]:
    """The properties to hold of a base in a mode."""
    if base == "norm":
        return ("overflow",)  # what its large network is there for
    if mode == "pynative" and base in ("fixed", "half"):
        return tuple(name for name in ALL if name not in WHOLE)
    return ALL


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    """One process per device for all scripts: importing MindSpore takes seconds."""
    found = {
        name: Drivers(tmp_path_factory.mktemp("drivers")) for name in ("CPU", "Ascend")
    }
    yield found
    for one in found.values():
        one.stop()


@pytest.fixture(scope="module")
def lab(tmp_path_factory, drivers):
    """Labs, one per script however often it is asked for."""
    labs: dict[tuple[TrainingSpec, str], Lab] = {}

    def lab_of(spec: TrainingSpec, device: str = "CPU") -> Lab:
        if (spec, device) not in labs:
            script = tmp_path_factory.mktemp("script") / "train.py"
            script.write_text(generate(spec), encoding="utf-8")
            labs[spec, device] = Lab(script, drivers[device], device)
        return labs[spec, device]

    return lab_of


def not_applicable(spec: TrainingSpec) -> set[str]:
    """The properties that a script has nothing to do with."""
    without = {
        "overflow": spec.scaling == "none",
        "constant-scale": spec.scaling == "none",
        "scaling-bits": spec.scaling == "none",
        "fixed-overflow": spec.scaling != "fixed",
        "clip-norm": spec.clip_norm is None,
        "workers-agree": True,
    }
    return {name for name, missing in without.items() if missing}


@pytest.mark.parametrize(
    "device", ["CPU", pytest.param("Ascend", marks=pytest.mark.ascend)]
)
@pytest.mark.parametrize(
    ("base", "style", "mode"), list(itertools.product(BASES, STYLES, MODES))
)
def test_scripts_keep_the_contract(lab, base, style, mode, device):
    spec = replace(base_spec(base, style), mode=mode)
    names = names_of(base, mode)
    found = {name: check(name, lab(spec, device)) for name in names}
    wrong = {n: (r.verdict, r.reason) for n, r in found.items() if r.verdict != "pass"}
    expected = {n for n in names if n in not_applicable(spec)}
    assert {n for n, (verdict, _) in wrong.items()} == expected, wrong
    assert {verdict for verdict, _ in wrong.values()} <= {"not applicable"}, wrong


@pytest.mark.parametrize("style", STYLES)
def test_statistics_survive_a_dropped_window_of_one_micro_batch(lab, style):
    spec = TrainingSpec(style=style, amp="O2", optimizer="sgd", model="resnet18")
    assert check("overflow", lab(spec)).verdict == "pass"


@pytest.mark.parametrize("amp", ["O1", "O3", "auto"])
@pytest.mark.parametrize("style", STYLES)
def test_levels_of_mixed_precision_keep_windows_and_the_loss(lab, style, amp):
    spec = replace(base_spec("half", style), amp=amp, accum=2, mode="graph")
    for name in ("order", "shown-loss", "precision"):
        result = check(name, lab(spec))
        assert result.verdict == "pass", result


@pytest.mark.parametrize("base", ["full", "plain", "half"])
def test_styles_and_modes_agree(lab, base):
    """Weights and losses of shuffled data, from the same seed, within the contract."""
    runs = {}
    case = Case(
        network="random", sizes=(4,) * 7, epochs=2, shuffle=True, lr=LR, scale=SCALE
    )
    for style, mode in itertools.product(STYLES, MODES):
        spec = replace(base_spec(base, style), mode=mode)
        runs[style, mode] = lab(spec).run(case)
    first = runs["functional", "graph"]
    weights = {n: v.astype(float) for n, v in first.part("window.net.").items()}
    losses = [window["loss"] for window in first.windows]
    # Two epochs that came in the same order would make windows of the first again.
    assert len(set(losses)) == len(losses)
    bound = 1e-3 if base == "half" else 1e-6
    for run in runs.values():
        assert largest_error(run.part("window.net."), weights) <= bound
        assert [w["loss"] for w in run.windows] == pytest.approx(losses, rel=bound)


@st.composite
def specs(draw, style: str, mode: str) -> TrainingSpec:
    """A script of a style: all that changes what a window does."""
    return TrainingSpec(
        style=style,
        mode=mode,
        model="mlp",
        accum=draw(st.integers(1, 4)),
        loss_scale=draw(st.sampled_from(["none", "fixed", "dynamic"])),
        clip_norm=draw(st.sampled_from([None, 0.5])),
        optimizer=draw(st.sampled_from(list(OPTIMIZERS))),
        weight_decay=draw(st.sampled_from([None, 0.05])),
        lr_schedule=draw(st.sampled_from(list(LR_SCHEDULES))),
        warmup=draw(st.sampled_from([0, 2])),
    )


@st.composite
def cases(draw, spec: TrainingSpec, sizes: tuple[int, ...], most: int) -> Case:
    """A run: uneven micro-batches, partial windows, overflows anywhere."""
    micro_batches = draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=most))
    epochs = draw(st.integers(1, 2))
    count = len(micro_batches) * epochs
    plants: dict[int, float] = {}
    if spec.scaling != "none":
        values = st.sampled_from([float("inf"), float("-inf"), float("nan")])
        plants = draw(st.dictionaries(st.integers(0, count - 1), values, max_size=4))
    return Case(
        sizes=tuple(micro_batches),
        epochs=epochs,
        plants=tuple(sorted(plants.items())),
        data_seed=draw(st.integers(0, 5)),
        lr=LR,
        scale=2.0 ** draw(st.integers(0, 12)),
        scale_window=draw(st.integers(1, 3)),
        max_updates=draw(st.sampled_from([None, None, 1, 3])),
    )


def hold(lab: Lab, spec: TrainingSpec, case: Case) -> None:
    """Hold a run against the reference: every record, weight, state and loss of it."""
    run = lab.run(long_gradients(lab, case))
    facts = Facts.of(lab.loaded, run.answer)
    windows = hold_count(facts, run)
    steps = follow(facts, run)
    assert len(steps) == windows
    fields = "epoch window updates micro_batches items lr loss_scale skipped"
    hold_records(steps, *fields.split())
    for step in steps:
        assert step.changed == []
    if not all(step.dropped for step in steps):
        for loss in (False, True):
            held = hold_values(facts, steps, loss=loss, what="windows")
            assert held.verdict == "pass", held
    total = case.epochs * -(-len(case.sizes) // spec.accum)
    rates = [
        reference.learning_rate(spec.lr_schedule, LR, update, total, spec.warmup)
        for update in range(total)
    ]
    built = run.answer["optimizer"]
    assert built.get("rates", [built.get("rate")] * total) == pytest.approx(rates)


SETTINGS = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("style", STYLES)
def test_any_run_is_the_reference_in_pynative_mode(lab, style):
    @settings(SETTINGS, max_examples=30)
    @given(data=st.data())
    def holds(data):
        spec = data.draw(specs(style, "pynative"))
        hold(lab(spec), spec, data.draw(cases(spec, (1, 2, 3, 4, 5), 8)))

    holds()


@pytest.mark.parametrize("style", STYLES)
def test_any_run_is_the_reference_in_graph_mode(lab, style):
    """Few, and of two sizes: every size of a micro-batch costs a compile."""

    @settings(SETTINGS, max_examples=8)
    @given(data=st.data())
    def holds(data):
        spec = data.draw(specs(style, "graph"))
        hold(lab(spec), spec, data.draw(cases(spec, (2, 5), 9)))

    holds()
