"""The combinations of options that the tests go through, from the catalogue."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from generator import TrainingSpec, rules
from generator.catalog import AMP_DTYPES, AMP_LEVELS, LOSS_SCALES, LR_SCHEDULES, MODES
from generator.catalog import STYLES as STYLE_ENTRIES

STYLES = tuple(STYLE_ENTRIES)
SCHEDULES = [(schedule, warmup) for schedule in LR_SCHEDULES for warmup in (0, 5)]


def _specs(**choices: Any) -> Iterator[TrainingSpec]:
    names = list(choices)
    for values in itertools.product(*choices.values()):
        spec = TrainingSpec(**dict(zip(names, values, strict=True)))
        if not rules.check(spec):
            yield spec


def all_specs() -> list[TrainingSpec]:
    """Every valid style × amp × dtype × scale × accum × mode × clip × schedule."""
    return list(
        _specs(
            style=STYLES,
            amp=tuple(AMP_LEVELS),
            amp_dtype=tuple(AMP_DTYPES),
            loss_scale=tuple(LOSS_SCALES),
            accum=(1, 4),
            mode=tuple(MODES),
            clip_norm=(None, 1.0),
            lr_schedule=tuple(LR_SCHEDULES),
            warmup=(0, 5),
        )
    )


def other_specs() -> list[TrainingSpec]:
    """Networks, data sets and optimizers, in every style."""
    from generator.catalog import DATASETS, MODELS, OPTIMIZERS

    return [
        *_specs(
            style=STYLES, model=tuple(MODELS), dataset=tuple(DATASETS), amp=("O0", "O2")
        ),
        *_specs(
            style=STYLES,
            optimizer=tuple(OPTIMIZERS),
            weight_decay=(None, 0.1),
            lr_schedule=("constant", "cosine"),
        ),
        *_specs(
            style=STYLES,
            model=("resnet18",),
            accum=(1, 2),
            loss_scale=tuple(LOSS_SCALES),
        ),
    ]
