"""A run held against the reference, window by window.

Every window starts from the state that the script had before it, so an error shows in
the window that made it and does not grow; and the first one starts from known weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from generator.verify.facts import Facts, rule_of
from generator.verify.process import Run
from generator.verify.reference import (
    Array,
    Arrays,
    Window,
    clipped,
    loss_and_gradient,
    micro_batches,
    windows,
)
from generator.verify.result import NotJudged


@dataclass
class Step:
    """One window: what was found and what is right.

    Attributes:
        window: its place in the run.
        record: its line of metrics.jsonl.
        wanted: what the line should hold, but for the loss.
        dropped: whether it has an overflow and is to be dropped.
        scale_changed: whether the next window has another scale.
        weights: largest relative error of a parameter after it.
        state: largest relative error of the optimizer's state after it.
        loss: error of the loss shown, relative to it, or to 1 if it is smaller.
        changed: arrays that a dropped window changed.
        unknown: why the reference cannot say what its weights should be, if it cannot.
    """

    window: Window
    record: dict[str, Any]
    wanted: dict[str, Any]
    dropped: bool
    scale_changed: bool = False
    weights: float = 0.0
    state: float = 0.0
    loss: float = 0.0
    changed: list[str] = field(default_factory=list)
    unknown: str = ""

    def differs(self, *names: str) -> str:
        """The first of the record's fields that is not what it should be, if any."""
        for name in names:
            found, wanted = self.record.get(name), self.wanted[name]
            same = found == wanted
            if isinstance(wanted, float) and isinstance(found, int | float):
                same = math.isclose(found, wanted, rel_tol=1e-6)
            if not same:
                return f"window {self.window.number}: {name} is {found}, not {wanted}"
        return ""


def planned(facts: Facts, run: Run) -> list[Window]:
    """The windows that the run should have had."""
    case = run.case
    all_windows = windows(len(case.sizes), case.epochs, facts.accum)
    if case.max_updates is None:
        return all_windows
    plan, updates = [], 0
    for window in all_windows:
        plan.append(window)
        updates += not _planted(facts, run, window)
        if updates == case.max_updates:
            break
    return plan


def _planted(facts: Facts, run: Run, window: Window) -> bool:
    spoilt = {index for index, _ in run.case.plants}
    return facts.scaler is not None and bool(spoilt & set(window.run_indices))


def follow(facts: Facts, run: Run, *, values: bool = True) -> list[Step]:
    """Hold every recorded window of a run against what it should be.

    Without ``values``, weights and losses are not looked at: the networks of some
    probes have no reference.

    Raises:
        NotJudged: if the weights at each window could not be seen.
    """
    case = run.case
    batches = micro_batches(case.sizes, case.data_seed, case.gain)
    seen = {len(value) for value in run.part("window.net.").values()}
    if seen != {len(run.windows)}:
        raise NotJudged(
            "the weights of each window could not be seen: the script does not write "
            "metrics.jsonl by json.dumps, or records no windows"
        )
    rates = run.answer["optimizer"] or {}
    scale = facts.scaler.scale(case.scale, case.scale_window) if facts.scaler else None
    steps: list[Step] = []
    updates = 0
    for window, record in zip(planned(facts, run), run.windows, strict=False):
        dropped = _planted(facts, run, window)
        lr = _rate(rates, updates, case.lr)
        updates += not dropped
        step = Step(
            window,
            record,
            {
                "epoch": window.epoch,
                "window": window.number,
                "updates": updates,
                "micro_batches": len(window.indices),
                "items": sum(case.sizes[index] for index in window.indices),
                "lr": lr,
                "loss_scale": scale.value if scale else 1.0,
                "skipped": dropped,
            },
            dropped,
        )
        if scale:
            before = scale.value
            scale.adjust(not dropped)
            step.scale_changed = scale.value != before
        index = window.number - 1
        if dropped:
            step.changed = _changes(run, index)
        elif values:
            data = np.concatenate([batches[i][0] for i in window.indices])
            label = np.concatenate([batches[i][1] for i in window.indices])
            _hold(facts, run, step, index, data, label, lr)
        steps.append(step)
    return steps


def _rate(optimizer: dict[str, Any], update: int, lr: float | None) -> float:
    rates = optimizer.get("rates")
    if rates is None:
        return float(optimizer.get("rate", lr or 0.0))
    return float(rates[min(update, len(rates) - 1)])


def state_before(run: Run, index: int) -> tuple[Arrays, Arrays]:
    """Weights and optimizer state before a window, counted from 0."""
    if index:
        return run.part("window.net.", index - 1), run.part("window.opt.", index - 1)
    state = run.part("window.opt.", 0)
    return run.part("start.net."), {n: _initial(n, v) for n, v in state.items()}


def _initial(name: str, value: Array) -> Array:
    """What MindSpore's optimizers start with; settings among it are as they are."""
    if name.startswith("stat."):
        return np.ones_like(value)
    if name in ("beta1_power", "beta2_power"):
        return np.ones_like(value)
    if name == "global_step" or "." in name:
        return np.zeros_like(value)
    return value


def _changes(run: Run, index: int) -> list[str]:
    """The arrays whose bits a window changed."""
    weights, state = state_before(run, index)
    before = {f"net.{n}": v for n, v in weights.items()}
    before |= {f"opt.{n}": v for n, v in state.items()}
    after = {name: run.arrays[f"window.{name}"][index] for name in before}
    return [n.split(".", 1)[1] for n in before if not same_bits(before[n], after[n])]


def same_bits(first: Array, second: Array) -> bool:
    """Whether two arrays are the same to the last bit."""
    return first.dtype == second.dtype and first.tobytes() == second.tobytes()


def _hold(
    facts: Facts,
    run: Run,
    step: Step,
    index: int,
    data: Array,
    label: Array,
    lr: float,
) -> None:
    weights, state = state_before(run, index)
    loss, gradient = loss_and_gradient(weights, data, label)
    found = step.record.get("loss")
    # A loss is a difference of logits that are about 1 or more. One near zero has their
    # rounding, so relative to itself it says nothing: seen 1.7e-4 for a loss of 1e-3.
    size = max(abs(loss), 1.0)
    step.loss = math.inf if found is None else abs(found - loss) / size
    try:
        rule = rule_of(run.answer["optimizer"])
    except NotJudged as reason:
        step.unknown = str(reason)
        return
    new, new_state = rule.update(weights, state, clipped(gradient, facts.clip), lr)
    step.weights = largest_error(run.part("window.net.", index), new)
    step.state = largest_error(run.part("window.opt.", index), new_state)


def largest_error(found: Arrays, wanted: Arrays) -> float:
    """The largest error of any array, relative to the largest value of its kind.

    Of one kind are all parameters, or all first moments, …: they are one long vector,
    and what is nearly zero in it is a difference of what is not. A value that is not
    finite counts as an infinite error.
    """
    kinds: dict[str, float] = {}
    for name, right in wanted.items():
        kind = _kind(name)
        size = float(np.abs(right).max(initial=0.0))
        kinds[kind] = max(kinds.get(kind, 0.0), size)
    worst = 0.0
    for name, right in wanted.items():
        error = float(np.abs(found[name].astype(np.float64) - right).max(initial=0.0))
        size = kinds[_kind(name)] or 1.0
        worst = max(worst, error / size if math.isfinite(error) else math.inf)
    return worst


STATE_KINDS = ("moments", "moment1", "moment2", "accum", "stat", "adam_m", "adam_v")
SCALARS = ("beta1_power", "beta2_power", "global_step", "learning_rate", "momentum")


def _kind(name: str) -> str:
    if name in SCALARS:
        return name
    first = name.split(".", 1)[0]
    return first if first in STATE_KINDS else "parameters"
