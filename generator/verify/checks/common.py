"""What several checks do with the steps of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from generator.verify.case import Case
from generator.verify.facts import Facts
from generator.verify.lab import LR, SCALE, Lab
from generator.verify.process import Run
from generator.verify.reference import (
    global_norm,
    linear_weights,
    loss_and_gradient,
    micro_batches,
)
from generator.verify.result import Failed, NotApplicable, NotJudged, Result
from generator.verify.trajectory import Step, planned

INFINITY = float("inf")


def error(value: float) -> str:
    """A relative error as the table shows it."""
    return f"{value:.1e}" if value else "0"


def hold_values(
    facts: Facts, steps: Iterable[Step], *, loss: bool = False, what: str
) -> Result:
    """Whether weights and optimizer state (or the loss) are right after every window.

    ``what`` says in a word for the table which windows these are.
    """
    bounds = facts.bounds
    kept = [step for step in steps if not step.dropped]
    if not kept:
        raise Failed(f"no {what} to measure")
    if not loss and kept[0].unknown:
        raise NotJudged(kept[0].unknown)
    limits = (
        {"loss": bounds.loss}
        if loss
        else {"weights": bounds.weights, "state": bounds.state}
    )
    worst = {name: max(getattr(step, name) for step in kept) for name in limits}
    measured = ", ".join(
        f"{name} {error(value)}"
        for name, value in worst.items()
        if value or name != "state"
    )
    bound = ", ".join(f"{limits[name]:g}" for name in limits)
    for step in kept:
        for name, limit in limits.items():
            found = getattr(step, name)
            if not found <= limit:
                label = {"state": "the optimizer's state", "loss": "the loss"}
                return Result(
                    "fail",
                    measured,
                    f"window {step.window.number}: {label.get(name, 'the weights')} "
                    f"differ{'s' * (name != 'weights')} by {error(found)}",
                    f"<= {bound}",
                )
    return Result("pass", f"{measured} over {len(kept)} {what}", bound=f"<= {bound}")


def hold_records(steps: Iterable[Step], *names: str) -> None:
    """Demand that these fields of every record are right.

    Raises:
        Failed: at the first that is not.
    """
    for step in steps:
        difference = step.differs(*names)
        if difference:
            raise Failed(difference)


def hold_count(facts: Facts, run: Run) -> int:
    """Demand that the run recorded as many windows as it should have.

    Raises:
        Failed: if it did not.
    """
    wanted = len(planned(facts, run))
    if len(run.windows) != wanted:
        raise Failed(
            f"{len(run.windows)} windows in {run.case.epochs} epochs of "
            f"{len(run.case.sizes)} micro-batches, not {wanted}"
        )
    return wanted


# The loss of the first window in a process has another last bit than that of a second,
# while the gradient has the same: MindSpore's CPU kernel of a mean tries out in how
# many parts it sums. Seen 3.4e-7.
SAME_LOSS = 1e-6


def hold_same_records(first: Run, second: Run, *but: str) -> None:
    """Demand that the windows that both runs recorded say the same.

    The loss may differ by its rounding; the time and the fields in ``but`` are not
    compared.

    Raises:
        Failed: at the first difference.
    """
    for one, two in zip(first.windows, second.windows, strict=False):
        for name in one.keys() - {"seconds", *but}:
            here, there = one[name], two.get(name)
            same = here == there
            if name == "loss" and isinstance(here, float) and isinstance(there, float):
                same = math.isclose(here, there, rel_tol=SAME_LOSS)
            if not same:
                raise Failed(
                    f"window {one['window']}: {name} is {here} in one run and {there} "
                    "in the other"
                )


TRIES = 2


def settled(measure: Callable[[int], Result]) -> Result:
    """What one of a few measurements finds that demand the same bits.

    MindSpore's CPU kernels choose by the clock in how many parts they sum, so under
    load two runs of one right script may differ in a last bit. What is wrong differs
    every time. ``measure`` gets the number of the try.

    Raises:
        Failed: as the first one did, if all do.
    """
    failures = []
    for number in range(TRIES):
        try:
            return measure(number)
        except Failed as failed:
            failures.append(failed)
    raise failures[0]


def needs_scaler(facts: Facts) -> None:
    """Stop a check of loss scaling where there is none.

    Raises:
        NotApplicable: without a loss scaler.
    """
    if facts.scaler is None:
        raise NotApplicable("the script has no loss scaling")


def long_gradients(lab: Lab, case: Case) -> Case:
    """The case with a network and data whose gradients are all clipped, if any are.

    The gradient of the linear probe grows with its data, where the other's does not.
    """
    clip = lab.loaded["constants"].get("CLIP_NORM")
    if clip is None:
        return case
    case = replace(case, network="linear")
    norms = [
        global_norm(loss_and_gradient(linear_weights(), data, label)[1])
        for data, label in micro_batches(case.sizes, case.data_seed)
    ]
    # Four times the norm: what is divided by N or S once too often gets below it.
    return replace(case, gain=max(1.0, 4 * float(clip) / min(norms)))


def overflow_case(lab: Lab) -> Case:
    """Three epochs; in the first two, windows overflow in every way that there is.

    In their first micro-batch, in the last one of a partial window, in all of them, and
    twice in a row; the third epoch is good, and a dynamic scale grows in it.
    """
    sizes = lab.sizes(3)
    accum, per_epoch = lab.accum, len(sizes)
    second = accum  # the first micro-batch of the second window
    last = per_epoch - 1  # the last one of the epoch
    all_ = range(per_epoch, per_epoch + accum)  # the first window of the second epoch
    third_end = per_epoch + 3 * accum - 1
    plants = {second: INFINITY, last: -INFINITY, third_end: float("nan")}
    plants |= dict.fromkeys(all_, INFINITY)
    return Case(
        sizes=sizes,
        epochs=3,
        plants=tuple(sorted(plants.items())),
        data_seed=1,
        lr=LR,
        scale=SCALE,
        scale_window=2,
    )
