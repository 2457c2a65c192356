"""Loss scaling: the order of a window's end, overflows, the scale, its bits."""

from __future__ import annotations

from dataclasses import replace

from generator.verify.checks.common import (
    hold_count,
    hold_records,
    hold_same_records,
    hold_values,
    long_gradients,
    needs_scaler,
    overflow_case,
    settled,
)
from generator.verify.facts import Scaler
from generator.verify.lab import Lab
from generator.verify.process import Run
from generator.verify.result import Failed, NotApplicable, Result
from generator.verify.trajectory import Step, follow, same_bits


def order(lab: Lab) -> Result:
    """All that happens at a window's end happens once and in its place.

    With overflows, and a scale that grows and shrinks, in one run: any other order
    leaves other weights, another state or another scale. A script that clips makes the
    run once more with gradients that are all clipped, which hides their scale.
    """
    facts = lab.facts
    case = overflow_case(lab)
    if facts.scaler is None:
        case = replace(case, plants=())
    steps = follow(facts, lab.run(case))
    if facts.clip is not None:
        steps += follow(facts, lab.run(long_gradients(lab, case)))
    hold_records(steps, "loss_scale", "skipped", "updates")
    return hold_values(facts, steps, what="windows")


def overflow(lab: Lab) -> Result:
    """A window with an overflow leaves nothing behind, wherever in it that was."""
    facts = lab.facts
    needs_scaler(facts)
    run = lab.run(overflow_case(lab))
    hold_count(facts, run)
    steps = follow(facts, run)
    dropped = _dropped(steps)
    statistics = 0
    if lab.loaded["statistics"]:
        # The script's own network has running statistics, so it has to keep them.
        norm = replace(overflow_case(lab), network="norm")
        dropped += _dropped(follow(facts, lab.run(norm), values=False))
        statistics = 2
    kept = hold_values(facts, steps, what="windows kept")
    also = f", {statistics} statistics" if statistics else ""
    return replace(kept, measured=f"{dropped} dropped without a trace{also}")


def _dropped(steps: list[Step]) -> int:
    """How many windows were dropped, all of them without a trace.

    Raises:
        Failed: if one was not, or one that is good was.
    """
    hold_records(steps, "skipped", "updates", "micro_batches", "items")
    for step in steps:
        if step.changed:
            raise Failed(
                f"the dropped window {step.window.number} changed {step.changed[0]}"
            )
    return sum(step.dropped for step in steps)


def constant_scale(lab: Lab) -> Result:
    """The scale of every window is the one that windows alone have led to."""
    facts = lab.facts
    needs_scaler(facts)
    steps = follow(facts, lab.run(overflow_case(lab)))
    hold_records(steps, "loss_scale")
    held = hold_values(facts, steps, what="windows")
    changes = sum(step.scale_changed for step in steps)
    measured = f"{len(steps)} windows, {changes} changes of the scale"
    return replace(held, measured=measured, bound="equal")


def scaling_bits(lab: Lab) -> Result:
    """At O0, a scale of 1 and others that are powers of two leave the same bits."""
    facts = lab.facts
    needs_scaler(facts)
    return settled(lambda number: _same_bits(lab, facts.scaler, number))


def _same_bits(lab: Lab, scaler: Scaler | None, number: int) -> Result:
    case = replace(lab.base, full_precision=True, stir=number)
    powers = (1.0, 2.0**13)
    if scaler is not None and scaler.kind == "fixed":
        case, *others = (replace(case, fixed_scale=power) for power in powers)
    else:
        case, *others = (replace(case, scale=power) for power in powers)
        others.append(replace(case, scale=4.0, scale_window=1))  # grows every window
    plain = lab.run(case)
    for other in others:
        _same_run(plain, lab.run(other))
    return Result("pass", f"{len(others) + 1} runs, every bit", bound="same bits")


def _same_run(first: Run, second: Run) -> None:
    """Demand the same weights, optimizer state and losses, to the last bit."""
    for prefix in ("window.net.", "window.opt."):
        others = second.part(prefix)
        for name, value in first.part(prefix).items():
            if not same_bits(value, others[name]):
                raise Failed(f"the scale changes bits of {name}")
    hold_same_records(first, second, "loss_scale")


def fixed_overflow(lab: Lab) -> Result:
    """A fixed scale drops windows too, and unscales gradients exactly once."""
    facts = lab.facts
    needs_scaler(facts)
    assert facts.scaler is not None
    if facts.scaler.kind != "fixed":
        raise NotApplicable("the scale is dynamic")
    steps = follow(facts, lab.run(overflow_case(lab)))
    dropped = _dropped(steps)
    held = hold_values(facts, steps, what="windows kept")
    return replace(held, measured=f"{dropped} dropped, {held.measured}")
