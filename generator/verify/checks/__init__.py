"""One function per property: it asks a lab for runs and returns a Result."""

from __future__ import annotations

from collections.abc import Callable

from generator.verify.checks import ending, running, scaling, windows
from generator.verify.lab import Lab
from generator.verify.result import Result, Stop

CHECKS: dict[str, Callable[[Lab], Result]] = {
    "window-equals-batch": windows.window_equals_batch,
    "partial-windows": windows.partial_windows,
    "order": scaling.order,
    "overflow": scaling.overflow,
    "constant-scale": scaling.constant_scale,
    "shown-loss": windows.shown_loss,
    "learning-rate": windows.learning_rate,
    "scaling-bits": scaling.scaling_bits,
    "fixed-overflow": scaling.fixed_overflow,
    "clip-norm": windows.clip_norm,
    "precision": running.precision,
    "styles-agree": running.styles_agree,
    "learns": running.learns,
    "resume": ending.resume,
    "never-blind": ending.never_blind,
    "train-mode": running.train_mode,
    "workers-agree": ending.workers_agree,
    "same-seed": running.same_seed,
}


def check(name: str, lab: Lab) -> Result:
    """The answer of the check of that name, whatever becomes of it."""
    try:
        return CHECKS[name](lab)
    except Stop as stop:
        return stop.result
