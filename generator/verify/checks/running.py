"""A run as a whole: precision, modes, training mode, seeds, and that it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from generator.verify.case import Case
from generator.verify.checks.common import (
    error,
    hold_same_records,
    hold_values,
    settled,
)
from generator.verify.lab import LR, SCALE, Lab
from generator.verify.process import Run
from generator.verify.result import Failed, NotJudged, Result
from generator.verify.trajectory import follow, largest_error, same_bits

# Types that a Parameter of the training state may have; counters are whole numbers.
WIDE = ("Float32", "Float64", "Int32", "Int64", "Bool")


def precision(lab: Lab) -> Result:
    """Weights, sums and optimizer state are float32, and so is the loss.

    A loss computed in float16 is a number of float16, with its 11 bits; a window of one
    micro-batch shows it as it was.
    """
    facts = lab.facts
    case = Case(network="linear", sizes=(4,), epochs=6, lr=LR, scale=SCALE, census=True)
    run = lab.run(case)
    census = run.answer["census"]
    for name, kind in census.items():
        if kind not in WIDE:
            raise Failed(f"the parameter {name} is {kind}")
    losses = np.array([w["loss"] for w in run.windows], dtype=float)
    narrow = int((losses == losses.astype(np.float16)).sum())
    if narrow and facts.precision != "bfloat16":
        raise Failed(f"{narrow} of {len(losses)} losses are float16 numbers")
    return Result("pass", f"{len(census)} parameters, {len(losses)} losses in float32")


def styles_agree(lab: Lab) -> Result:
    """Graph mode, PyNative mode and the reference make the same run."""
    facts = lab.facts
    other = "pynative" if facts.mode == "graph" else "graph"
    first = lab.run(lab.base)
    second = lab.attempt(replace(lab.base, mode=other))
    if second.status:
        raise NotJudged(f"in {other} mode the run ends with {second.message}")
    bound = 1e-6 if facts.precision == "float32" else 1e-3
    apart = largest_error(
        second.part("window.net."),
        {name: v.astype(float) for name, v in first.part("window.net.").items()},
    )
    measured = f"modes {error(apart)}"
    if not apart <= bound:
        return Result("fail", measured, "graph and PyNative differ", f"<= {bound:g}")
    for run in (first, second):
        held = hold_values(facts, follow(facts, run), what="windows")
        if held.verdict != "pass":
            return held
    return Result(
        "pass", f"{measured}, reference {held.measured}", bound=f"<= {bound:g}"
    )


OWN_TIMEOUT = 100.0  # seconds; a ResNet-18 of three micro-batches takes most of it


def own_case() -> Case:
    """The script's own network and data, with its own settings, for six updates."""
    return Case(network="own", epochs=6, max_updates=6, stir=1)


def own_run(lab: Lab, case: Case) -> Run:
    """A run on the script's own network and data.

    Its micro-batches are made small, to be done in time.

    Raises:
        NotJudged: if it does not end well: data may be missing here.
    """
    if "batch_size" in lab.loaded["flags"]:
        size = min(8, int(lab.loaded["flags"]["batch_size"]))
        case = replace(case, arguments=("--batch-size", str(size)))
    run = lab.attempt(case, OWN_TIMEOUT)
    if run.status:
        raise NotJudged(f"its own network and data do not run here: {run.message}")
    return run


def learns(lab: Lab) -> Result:
    """Of the first six windows of a default run, at most one is skipped."""
    lab.needs_flag("max_updates")
    run = own_run(lab, own_case())
    first = run.windows[:6]
    skipped = sum(bool(w["skipped"]) for w in first)
    measured = f"{skipped} of {len(first)} skipped"
    if skipped > 1:
        return Result("fail", measured, "the scale it starts with is too large")
    bad = [w["window"] for w in first if w["loss"] is None and not w["skipped"]]
    if bad:
        return Result("fail", measured, f"the loss of window {bad[0]} is not finite")
    start, end = run.part("start.net."), run.part("end.net.")
    moved = [name for name in start if not np.array_equal(start[name], end[name])]
    if not moved:
        return Result("fail", measured, "no weight has moved")
    if not all(np.isfinite(value).all() for value in end.values()):
        return Result("fail", measured, "weights are not finite")
    return Result("pass", measured)


def train_mode(lab: Lab) -> Result:
    """Statistics move in training, in every epoch, and not in evaluation."""
    case = Case(
        network="norm", sizes=(4,) * (lab.accum + 1), epochs=2, lr=LR, scale=SCALE
    )
    run = lab.run(case)
    if len(run.evaluations) != 2 or len(run.windows) % 2:
        raise NotJudged("the run does not evaluate once an epoch")
    half = len(run.windows) // 2
    for statistic in ("norm.moving_mean", "norm.moving_variance"):
        window = run.arrays[f"window.net.{statistic}"]
        after = run.arrays[f"eval.net.{statistic}"]
        moves = [
            (run.arrays[f"start.net.{statistic}"], window[half - 1], True, "epoch 1"),
            (window[half - 1], after[0], False, "evaluation"),
            (after[0], window[-1], True, "the epoch after evaluation"),
            (window[-1], after[1], False, "evaluation"),
        ]
        for before, now, training, when in moves:
            if same_bits(before, now) == training:
                wrong = "stands still in" if training else "moves in"
                raise Failed(f"{statistic} {wrong} {when}")
    return Result("pass", "BatchNorm's statistics move in training only")


def same_seed(lab: Lab) -> Result:
    """Two runs are the same to the last bit, whatever random numbers came before."""
    return settled(lambda number: _same_seed(lab, 2 * number))


def _same_seed(lab: Lab, stirred: int) -> Result:
    case = Case(
        network="random",
        sizes=(4,) * (2 * lab.accum + 1),
        epochs=2,
        lr=LR,
        scale=SCALE,
        shuffle=True,
        stir=stirred + 1,
    )
    windows = _same_twice(lab.run(case), lab.run(replace(case, stir=stirred + 2)))
    lab.needs_flag("seed")
    seed = int(lab.loaded["flags"]["seed"]) + 1
    other = lab.run(replace(case, arguments=("--seed", str(seed)), max_updates=1))
    start = lab.run(case).part("start.net.")
    if all(same_bits(v, start[n]) for n, v in other.part("start.net.").items()):
        raise Failed("another --seed draws the same weights")
    own = replace(own_case(), stir=stirred + 1)
    try:
        first = own_run(lab, own)
    except NotJudged:
        return Result("pass", f"{windows} windows of a probe, every bit")
    again = own_run(lab, replace(own, max_updates=2, stir=stirred + 2))
    windows += _same_twice(again, first)
    return Result("pass", f"{windows} windows, own network too, every bit")


def _same_twice(first: Run, second: Run) -> int:
    """Demand that the first run's windows are in the second; returns how many."""
    count = len(first.windows)
    for name, value in first.part("start.net.").items():
        if not same_bits(value, second.arrays[f"start.net.{name}"]):
            raise Failed(f"the same seed draws other weights: {name}")
    for prefix in ("window.net.", "window.opt.", "window.scaler."):
        for name, value in first.part(prefix).items():
            if not same_bits(value, second.arrays[prefix + name][:count]):
                raise Failed(f"the same seed leads to another {name}")
    hold_same_records(first, second)
    return count
