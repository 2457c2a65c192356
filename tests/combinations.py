"""The combinations of options that the tests go through, from the catalogue."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from allpairspy import AllPairs

from generator import TrainingSpec, rules
from generator.catalog import (
    AMP_DTYPES,
    AMP_LEVELS,
    DATASETS,
    LOSS_SCALES,
    LR_SCHEDULES,
    MODELS,
    MODES,
    OPTIMIZERS,
)
from generator.catalog import STYLES as STYLE_ENTRIES
from generator.command import command

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


def matrix_specs(dtype: str = "float16") -> list[TrainingSpec]:
    """Every valid style × amp × loss scale × accum × mode × optimizer."""
    return list(
        _specs(
            style=STYLES,
            amp=tuple(
                level for level in AMP_LEVELS if dtype == "float16" or level != "O0"
            ),
            amp_dtype=(dtype,),
            loss_scale=tuple(LOSS_SCALES),
            accum=(1, 4),
            mode=tuple(MODES),
            optimizer=tuple(OPTIMIZERS),
            model=("mlp",),
        )
    )


def pairwise_specs(dtype: str = "float16") -> list[TrainingSpec]:
    """Few requests in which any two choices of different options meet."""
    scaling: list[dict[str, Any]] = [
        {},  # what is right for the level
        {"loss_scale": "none"},
        {"loss_scale": "fixed", "loss_scale_value": 64},
        {"loss_scale": "dynamic", "loss_scale_window": 2, "loss_scale_factor": 4},
        {"loss_scale": "dynamic", "loss_scale_value": 256},
    ]
    space: dict[str, list[Any]] = {
        "style": list(STYLES),
        "amp": [level for level in AMP_LEVELS if dtype == "float16" or level != "O0"],
        "scaling": scaling,
        "accum": [1, 2, 5],
        "mode": list(MODES),
        "optimizer": list(OPTIMIZERS),
        "weight_decay": [None, 0.05],
        "clip_norm": [None, 1.0],
        "lr_schedule": list(LR_SCHEDULES),
        "warmup": [0, 3],
        "model": list(MODELS),
        "dataset": [name for name, entry in DATASETS.items() if not entry.files],
        "batch_size": [8, 6],
        "seed": [1, 7],
    }

    def spec_of(row: list[Any]) -> TrainingSpec:
        choices = dict(zip(space, row, strict=True))
        scale = choices.pop("scaling")
        # At SGD's default rate ResNet-18 on so few items runs away, at O0 too.
        return TrainingSpec(amp_dtype=dtype, lr=0.005, **choices, **scale)

    def valid(row: list[Any]) -> bool:
        return len(row) < len(space) or not rules.check(spec_of(row))

    rows = AllPairs(list(space.values()), filter_func=valid)
    return [spec_of(row) for row in rows]


def name_of(spec: TrainingSpec) -> str:
    """What tells a request from others: its command without the word msgen."""
    return command(spec).removeprefix("msgen ")


def other_specs() -> list[TrainingSpec]:
    """Networks, data sets and optimizers, in every style."""
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
