"""What a script does, as it was seen to do it; its docstring is not asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from generator.verify.reference import LossScale, Rule
from generator.verify.result import NotJudged


@dataclass(frozen=True)
class Bounds:
    """Largest errors, each relative to the largest value of its kind.

    Attributes:
        weights: of the parameters after an update.
        state: of the optimizer's moments after an update, and of the gradient.
        loss: of a window's mean loss.
    """

    weights: float
    state: float
    loss: float


# float32: the contract's 1e-6; seen 1.5e-7, 1.3e-6 and 4.8e-7. The second moment is a
# square, which doubles a relative error. float16 rounds to 11 bits, by up to 4.9e-4
# each time; seen 7.6e-5, 1.5e-3 and 2.9e-4, the weights with a rate of 0.01. bfloat16
# has 8 bits and runs on no CPU: float16's bounds times 2**3, not measured.
BOUNDS = {
    "float32": Bounds(weights=1e-6, state=2e-6, loss=1e-6),
    "float16": Bounds(weights=2e-4, state=4e-3, loss=1e-3),
    "bfloat16": Bounds(weights=2e-3, state=3e-2, loss=8e-3),
}


@dataclass(frozen=True)
class Scaler:
    """The loss scaler that the script builds, with the script's own settings."""

    kind: str
    value: float
    factor: float
    window: int | None

    def scale(self, value: float | None, window: int | None) -> LossScale:
        """The scale of a run, with what its case puts in place of the settings."""
        if self.window is None:
            return LossScale(self.value)
        return LossScale(value or self.value, self.factor, window or self.window)


@dataclass(frozen=True)
class Facts:
    """What a script does.

    Attributes:
        accum: N, micro-batches per update.
        clip: the largest global norm of an update's gradient, if it clips.
        scaler: its loss scaler, if it has one.
        precision: what its network computes in: float32, float16 or bfloat16.
        mode: graph or pynative.
        optimizer: its optimizer as the driver described it.
        flags: the options of its command line with their defaults.
    """

    accum: int
    clip: float | None
    scaler: Scaler | None
    precision: str
    mode: str
    optimizer: dict[str, Any] | None
    flags: dict[str, str]

    @property
    def bounds(self) -> Bounds:
        """The bounds of its precision."""
        return BOUNDS[self.precision]

    def rule(self) -> Rule:
        """The optimizer as the reference has it.

        Raises:
            NotJudged: if the reference does not know it.
        """
        return rule_of(self.optimizer)

    @classmethod
    def of(cls, loaded: dict[str, Any], seen: dict[str, Any]) -> Facts:
        """The facts of a script that was loaded and run once."""
        constants = loaded["constants"]
        scaler = seen["scaler"]
        low = {dtype for level, dtype in seen["amp"] if level != "O0"}
        clip = constants.get("CLIP_NORM")
        return cls(
            accum=int(constants.get("ACCUM", 1)),
            clip=None if clip is None else float(clip),
            scaler=Scaler(**scaler) if scaler else None,
            precision=low.pop().lower() if low else "float32",
            mode=seen["mode"] or "graph",
            optimizer=seen["optimizer"],
            flags=loaded["flags"],
        )


KINDS = {
    "SGD": "sgd",
    "Momentum": "momentum",
    "Adam": "adam",
    "AdamWeightDecay": "adam_weight_decay",
}


def rule_of(about: dict[str, Any] | None) -> Rule:
    """The rule of an optimizer as the driver described it.

    An ``AdamW`` of the script's own is MindSpore's Adam with an attribute ``decay``.

    Raises:
        NotJudged: if the reference does not know such a one.
    """
    if about is None:
        raise NotJudged("the script builds no optimizer of MindSpore's nn")
    name = about["class"]
    decoupled = about["own"] and name == "AdamW" and "Adam" in about["bases"]
    kind = "adamw" if decoupled else None if about["own"] else KINDS.get(name)
    if about.get("amsgrad"):
        name, kind = f"{name} with AMSGrad", None
    if kind == "momentum" and about["nesterov"]:
        # MindSpore's CPU kernel makes the same update with it as without.
        name, kind = "Nesterov's Momentum", None
    if kind is None:
        raise NotJudged(f"the reference does not know {name}")
    if about["grouped_rates"]:
        raise NotJudged("the reference does not know parameter groups with own rates")
    if about["loss_scale"] != 1.0:
        raise NotJudged("the reference does not know an optimizer with a loss_scale")
    decays = about["decay"]
    if decoupled:
        if about["decoupled"] is None:
            raise NotJudged("the reference finds no attribute decay in AdamW")
        decays = [about["decoupled"]] * len(about["order"])
    settings = {
        name: about[name]
        for name in ("momentum", "beta1", "beta2", "eps")
        if name in about
    }
    return Rule(
        kind,
        dampening=about["dampening"],
        nesterov=about["nesterov"],
        decay=dict(zip(about["order"], decays, strict=True)),
        **settings,
    )
