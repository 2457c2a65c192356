"""The numerical contract of a script, as data: eighteen properties."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Property:
    """One property of the contract.

    Attributes:
        number: its place in the contract, from 1.
        name: the slug by which the command line and the tests call it.
        title: what holds, in a line.
        bound: what is allowed, as the table shows it.
    """

    number: int
    name: str
    title: str
    bound: str


_TABLE = [
    ("window-equals-batch", "a window updates like one batch", "error <= {relative}"),
    ("partial-windows", "ceil(M/N) windows an epoch, no leak", "error <= {relative}"),
    ("order", "unscale, test, clip, update, adjust", "error <= {relative}"),
    ("overflow", "an overflow drops its window, whole", "same bits"),
    ("constant-scale", "one scale a window, grown by windows", "equal"),
    ("shown-loss", "the loss shown is the items' mean", "error <= {loss}"),
    ("learning-rate", "schedules count updates made", "error <= 1e-06"),
    ("scaling-bits", "scaling changes no bit at O0", "same bits"),
    ("fixed-overflow", "a fixed scale tests for overflow too", "error <= {relative}"),
    ("clip-norm", "clips a window's gradient once", "norm error <= {gradient}"),
    ("precision", "loss, sums, weights in float32", "all float32"),
    ("styles-agree", "graph, PyNative, float64 agree", "error <= {styles}"),
    ("learns", "a default run makes updates", "<= 1 of 6 windows skipped"),
    ("resume", "a resumed run ends with the same bits", "same bits"),
    ("never-blind", "no NaN weights with exit status 0", "exit status 1"),
    ("train-mode", "training mode is set and set back", "statistics move"),
    ("workers-agree", "p workers act as one of p times b", "error <= {relative}"),
    ("same-seed", "the same seed gives the same run", "same bits"),
]

PROPERTIES = tuple(
    Property(number, *fields) for number, fields in enumerate(_TABLE, start=1)
)
BY_NAME = {property_.name: property_ for property_ in PROPERTIES}
