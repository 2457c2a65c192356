"""The options of a script, from which flags, help, commands and the table are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from generator.catalog.amp import (
    AMP_DTYPES,
    AMP_LEVELS,
    DYNAMIC_SCALE_FACTOR,
    DYNAMIC_SCALE_VALUE,
    DYNAMIC_SCALE_WINDOW,
    FIXED_SCALE_VALUE,
    LOSS_SCALES,
)
from generator.catalog.datasets import DATASETS
from generator.catalog.entry import Entry
from generator.catalog.models import MODELS
from generator.catalog.optimizers import LR_SCHEDULES, OPTIMIZERS
from generator.catalog.runs import DEVICES, MODES
from generator.catalog.styles import STYLES
from generator.spec import TrainingSpec

Kind = Literal["choice", "integer", "number"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a script.

    Attributes:
        field: the field of :class:`TrainingSpec` that holds it; names the flag too.
        group: heading in the help and in the README's table.
        kind: what its value is.
        help: what it is for, one line.
        choices: the entries to choose from.
        own: how a user's own code is named in place of a choice, or None.
        unset: what happens where the default is None.
    """

    field: str
    group: str
    help: str
    kind: Kind = "choice"
    choices: Mapping[str, Entry] | None = None
    own: str | None = None
    unset: str | None = None

    @property
    def flag(self) -> str:
        """The option as it is typed: ``loss_scale`` is ``--loss-scale``."""
        return "--" + self.field.replace("_", "-")

    @property
    def default(self) -> Any:
        """The default value, as :class:`TrainingSpec` has it."""
        return _DEFAULTS[self.field]

    @property
    def default_text(self) -> str:
        """The default in words."""
        return self.unset if self.unset is not None else format_value(self.default)

    @property
    def values_text(self) -> str:
        """What may be given, in short: ``O0|O1|O2|O3|auto``, ``N`` or ``X``."""
        if self.choices is None:
            return "N" if self.kind == "integer" else "X"
        return "|".join([*self.choices, *([self.own] if self.own else [])])


_DEFAULTS = {field.name: field.default for field in fields(TrainingSpec)}


def format_value(value: object) -> str:
    """A value as one would type it: ``0.05``, ``65536``, ``lenet5``."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


OPTIONS = (
    Option(
        field="style",
        group="Style",
        help="How the script is written.",
        choices=STYLES,
    ),
    Option(
        field="mode",
        group="Style",
        help="Compiled graph or eager.",
        choices=MODES,
    ),
    Option(
        field="device",
        group="Style",
        help="The script's default device; every script runs on both.",
        choices=DEVICES,
    ),
    Option(
        field="amp",
        group="Precision",
        help="Mixed-precision level.",
        choices=AMP_LEVELS,
    ),
    Option(
        field="amp_dtype",
        group="Precision",
        help="Low-precision type of --amp.",
        choices=AMP_DTYPES,
    ),
    Option(
        field="loss_scale",
        group="Precision",
        help="Loss scaling.",
        choices=LOSS_SCALES,
        unset="dynamic where fp16 is used, else none",
    ),
    Option(
        field="loss_scale_value",
        group="Precision",
        help="The scale: initial (dynamic) or constant (fixed).",
        kind="number",
        unset=f"{DYNAMIC_SCALE_VALUE:.0f} dynamic, {FIXED_SCALE_VALUE:.0f} fixed",
    ),
    Option(
        field="loss_scale_factor",
        group="Precision",
        help="By what a dynamic scale shrinks and grows.",
        kind="integer",
        unset=str(DYNAMIC_SCALE_FACTOR),
    ),
    Option(
        field="loss_scale_window",
        group="Precision",
        help="Windows without overflow before a dynamic scale grows.",
        kind="integer",
        unset=str(DYNAMIC_SCALE_WINDOW),
    ),
    Option(
        field="accum",
        group="Updates",
        help="Micro-batches per update (the window).",
        kind="integer",
    ),
    Option(
        field="optimizer",
        group="Updates",
        help="The optimizer.",
        choices=OPTIMIZERS,
    ),
    Option(
        field="lr",
        group="Updates",
        help="Learning rate.",
        kind="number",
        unset=", ".join(f"{format_value(o.lr)} {o.key}" for o in OPTIMIZERS.values()),
    ),
    Option(
        field="weight_decay",
        group="Updates",
        help="Weight decay.",
        kind="number",
        unset=", ".join(
            [
                f"{format_value(o.weight_decay)} {o.key}"
                for o in OPTIMIZERS.values()
                if o.weight_decay
            ]
            + ["else 0"]
        ),
    ),
    Option(
        field="clip_norm",
        group="Updates",
        help="Clip the global norm of the window's gradient.",
        kind="number",
        unset="no clipping",
    ),
    Option(
        field="lr_schedule",
        group="Updates",
        help="Learning rate over the updates.",
        choices=LR_SCHEDULES,
    ),
    Option(
        field="warmup",
        group="Updates",
        help="Updates over which the rate rises linearly.",
        kind="integer",
    ),
    Option(
        field="model",
        group="Task",
        help="The network.",
        choices=MODELS,
        own="path.py:Class",
    ),
    Option(
        field="dataset",
        group="Task",
        help="The data.",
        choices=DATASETS,
        own="path.py:function",
    ),
    Option(
        field="batch_size",
        group="Task",
        help="Items of a micro-batch.",
        kind="integer",
    ),
    Option(
        field="epochs",
        group="Task",
        help="Passes over the data.",
        kind="integer",
    ),
    Option(
        field="seed",
        group="Task",
        help="Seed of weights and shuffling.",
        kind="integer",
    ),
)
