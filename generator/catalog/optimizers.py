"""Optimizers and learning-rate schedules."""

from __future__ import annotations

from dataclasses import dataclass

from generator.catalog.entry import Entry, by_key


@dataclass(frozen=True, kw_only=True)
class Optimizer(Entry):
    """An optimizer.

    Attributes:
        constructor: the class that a script calls.
        arguments: keyword arguments that it always gets, as source text.
        lr: learning rate where none is said.
        weight_decay: decay where none is said.
        template: fragment that defines ``constructor``, or None if MindSpore has it.
    """

    constructor: str
    arguments: str = ""
    lr: float
    weight_decay: float = 0.0
    template: str | None = None


OPTIMIZERS = by_key(
    [
        Optimizer(
            key="sgd",
            title="SGD",
            summary="plain stochastic gradient descent",
            constructor="nn.SGD",
            lr=0.1,
        ),
        Optimizer(
            key="momentum",
            title="momentum",
            summary="SGD with momentum 0.9",
            constructor="nn.Momentum",
            arguments="momentum=0.9",
            lr=0.02,
        ),
        Optimizer(
            key="adam",
            title="Adam",
            summary="Adam; weight decay, if any, is added to the gradient (L2)",
            constructor="nn.Adam",
            lr=0.002,
        ),
        Optimizer(
            key="adamw",
            title="AdamW",
            summary="Adam with decoupled weight decay 0.01 and bias correction",
            constructor="AdamW",
            lr=0.002,
            weight_decay=0.01,
            template="optimizers/adamw.py.jinja",
        ),
    ]
)

LR_SCHEDULES = by_key(
    [
        Entry(key="constant", title="constant", summary="one rate (after warm-up)"),
        Entry(key="cosine", title="cosine", summary="half a cosine down to zero"),
        Entry(
            key="step",
            title="step",
            summary="a tenth after one half and again after three quarters",
        ),
    ]
)
