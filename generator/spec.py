"""What is asked for: one frozen, typed description that everything later reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Style = Literal["functional", "cell", "model"]
AmpLevel = Literal["O0", "O1", "O2", "O3", "auto"]
AmpDtype = Literal["float16", "bfloat16"]
LossScale = Literal["none", "fixed", "dynamic"]
Mode = Literal["graph", "pynative"]
Device = Literal["auto", "CPU", "Ascend"]
LrSchedule = Literal["constant", "cosine", "step"]


@dataclass(frozen=True)
class SourceRef:
    """A class or function in a user's own Python file, written ``path.py:Name``."""

    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """Every choice that makes one script.

    ``None`` means that the choice is left to the catalogue: the optimizer knows its
    learning rate, the AMP level knows whether it needs loss scaling. Values are not
    checked here; :func:`generator.rules.check` does that, all at once.

    Attributes:
        accum: micro-batches per update, the window N.
        loss_scale_value: S at the start of the run (dynamic) or throughout (fixed).
        loss_scale_factor: by what S grows and shrinks (dynamic).
        loss_scale_window: windows without overflow after which S grows (dynamic).
        warmup: updates over which the learning rate rises linearly.
        batch_size: items of one micro-batch.
        script: file name of the script, as its docstring shows it.
    """

    style: Style = "functional"
    amp: AmpLevel = "O0"
    amp_dtype: AmpDtype = "float16"
    loss_scale: LossScale | None = None
    loss_scale_value: float | None = None
    loss_scale_factor: int | None = None
    loss_scale_window: int | None = None
    accum: int = 1
    mode: Mode = "graph"
    device: Device = "auto"
    model: str | SourceRef = "lenet5"
    dataset: str | SourceRef = "synthetic"
    optimizer: str = "adam"
    lr: float | None = None
    weight_decay: float | None = None
    clip_norm: float | None = None
    lr_schedule: LrSchedule = "constant"
    warmup: int = 0
    batch_size: int = 32
    epochs: int = 10
    seed: int = 1
    script: str = "train.py"

    @property
    def scaling(self) -> LossScale:
        """The loss scaling that is meant: dynamic where fp16 is used, unless said."""
        if self.loss_scale is not None:
            return self.loss_scale
        uses_fp16 = self.amp != "O0" and self.amp_dtype == "float16"
        return "dynamic" if uses_fp16 else "none"
