"""What a window is: its update, its count, its loss, its rate, its clipping."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from generator.verify.checks.common import (
    hold_count,
    hold_records,
    hold_values,
    long_gradients,
    overflow_case,
)
from generator.verify.lab import Lab
from generator.verify.reference import Arrays, global_norm
from generator.verify.result import Failed, NotApplicable, Result
from generator.verify.trajectory import follow, state_before


def window_equals_batch(lab: Lab) -> Result:
    """Every whole window makes the update of one batch of all its items."""
    facts = lab.facts
    steps = follow(facts, lab.run(lab.base))
    whole = [step for step in steps if not step.window.partial]
    return hold_values(facts, whole, what="windows")


def partial_windows(lab: Lab) -> Result:
    """An epoch has ceil(M/N) windows, the last by its own count, and none leaks."""
    facts = lab.facts
    cases = [lab.base, replace(lab.base, max_updates=4)]
    if facts.accum > 1:
        short = lab.sizes(0)  # an epoch shorter than the window
        cases.append(replace(lab.base, sizes=short, epochs=3))
    count = 0
    results = []
    for case in cases:
        run = lab.run(case)
        count += hold_count(facts, run)
        steps = follow(facts, run)
        hold_records(steps, "epoch", "window", "updates", "micro_batches", "items")
        results.append(hold_values(facts, steps, what="windows"))
    worst = next((result for result in results if result.verdict != "pass"), results[0])
    return replace(
        worst, measured=f"{count} windows as they should be, {worst.measured}"
    )


def shown_loss(lab: Lab) -> Result:
    """The loss of a record is the items' mean, also where the scale changes."""
    facts = lab.facts
    steps = follow(facts, lab.run(lab.base))
    if facts.scaler is not None:
        steps += follow(facts, lab.run(overflow_case(lab)))
    return hold_values(facts, steps, loss=True, what="windows")


def learning_rate(lab: Lab) -> Result:
    """The rate follows the updates that were made, and a schedule ends with them."""
    facts = lab.facts
    runs = [lab.run(lab.base)]
    if facts.scaler is not None:
        runs.append(lab.run(overflow_case(lab)))
    shown = 0
    for run in runs:
        optimizer = run.answer["optimizer"] or {}
        updates = run.case.epochs * math.ceil(len(run.case.sizes) / facts.accum)
        if optimizer.get("rates_end") and len(optimizer["rates"]) != updates:
            length = len(optimizer["rates"])
            raise Failed(f"the schedule has {length} rates for {updates} updates")
        steps = follow(facts, run)
        hold_records(steps, "lr", "updates")
        applied = hold_values(facts, steps, what="windows")
        if applied.verdict != "pass":
            return applied
        for step in steps:
            _count_updates(run.part("window.opt.", step.window.number - 1), step.wanted)
        shown += len({step.wanted["lr"] for step in steps})
    word = "rate" if shown == len(runs) else f"{shown} rates"
    return Result("pass", f"{word} shown and applied", bound="<= 1e-6")


def _count_updates(state: Arrays, wanted: dict[str, Any]) -> None:
    """Demand that the optimizer has counted the updates, and they alone."""
    steps = state.get("global_step")
    if steps is not None and steps.item() != wanted["updates"]:
        raise Failed(
            f"window {wanted['window']}: global_step is {steps.item()} after "
            f"{wanted['updates']} updates"
        )


def clip_norm(lab: Lab) -> Result:
    """The optimizer gets a gradient of the norm that it is clipped to."""
    facts = lab.facts
    if facts.clip is None:
        raise NotApplicable("the script does not clip")
    run = lab.run(long_gradients(lab, lab.base))
    steps = follow(facts, run)
    rule = facts.rule()
    weights, _ = state_before(run, 0)
    received = rule.received(
        {name: value.astype(float) for name, value in weights.items()},
        run.part("window.net.", 0),
        run.part("window.opt.", 0),
        steps[0].wanted["lr"],
    )
    norm = global_norm(received)
    measured = f"norm {norm:.6g} of {facts.clip:g}"
    # From the weights, the gradient is known to a rounding of theirs over the rate.
    bound = facts.bounds.state if rule.kind != "sgd" else max(facts.bounds.state, 1e-4)
    if not abs(norm / facts.clip - 1) <= bound:
        return Result("fail", measured, "an update has another norm", f"{bound:g}")
    held = hold_values(facts, steps, what="clipped windows")
    return replace(held, measured=f"{measured}, {held.measured}")
