"""Training in plain NumPy and float64: what a script's numbers are held against.

It shares no code with MindSpore: forward, gradient, clipping and the optimizers'
updates are written out here, from the formulas in MindSpore's documentation of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]

# All alike, so that gradients in a wrong order fit, and show in the numbers.
FEATURES = HIDDEN = CLASSES = 5


# ---- the probe network and its data


def weights(seed: int = 0) -> Arrays:
    """Starting weights of the probe network, in float32 as scripts keep them."""
    rng = np.random.default_rng(seed)
    shapes = {
        "hidden.weight": (HIDDEN, FEATURES),
        "hidden.bias": (HIDDEN,),
        "head.weight": (CLASSES, HIDDEN),
        "head.bias": (CLASSES,),
    }
    return {
        name: rng.normal(scale=0.5, size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def linear_weights(seed: int = 0) -> Arrays:
    """Starting weights of the linear probe: one layer without bias."""
    rng = np.random.default_rng(seed + 1)
    weight = rng.normal(scale=0.5, size=(CLASSES, FEATURES)).astype(np.float32)
    return {"head.weight": weight}


def micro_batches(
    sizes: tuple[int, ...], seed: int = 0, gain: float = 1.0
) -> list[tuple[Array, Array]]:
    """One (data, label) pair per size: (n, FEATURES) float32 and (n,) int32."""
    rng = np.random.default_rng(seed + 100)
    return [
        (
            (gain * rng.normal(size=(n, FEATURES))).astype(np.float32),
            rng.integers(CLASSES, size=n).astype(np.int32),
        )
        for n in sizes
    ]


def loss_and_gradient(
    parameters: Arrays, data: Array, label: Array
) -> tuple[float, Arrays]:
    """Mean cross entropy and its gradient, in float64.

    Of dense → ReLU → dense, or of one dense layer where the parameters have no hidden
    one. (Not tanh: MindSpore's CPU kernel of it is right to 6 digits only.)
    """
    p = {name: value.astype(np.float64) for name, value in parameters.items()}
    x = data.astype(np.float64)
    deep = "hidden.weight" in p
    features = _relu(x @ p["hidden.weight"].T + p["hidden.bias"]) if deep else x
    logits = features @ p["head.weight"].T + p.get("head.bias", 0.0)
    logits = logits - logits.max(axis=1, keepdims=True)
    total = np.exp(logits).sum(axis=1, keepdims=True)
    rows = np.arange(len(label))
    loss = (np.log(total[:, 0]) - logits[rows, label]).mean()
    delta = np.exp(logits) / total
    delta[rows, label] -= 1
    delta /= len(label)
    gradient = {"head.weight": delta.T @ features}
    if deep:
        back = (delta @ p["head.weight"]) * (features > 0)
        gradient |= {
            "head.bias": delta.sum(axis=0),
            "hidden.weight": back.T @ x,
            "hidden.bias": back.sum(axis=0),
        }
    return float(loss), gradient


def _relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


# ---- windows


@dataclass(frozen=True)
class Window:
    """What stands between two updates.

    Attributes:
        number: counted from 1 over the run, as in metrics.jsonl.
        epoch: counted from 1.
        indices: its micro-batches, counted from 0 in the epoch.
        start: its first micro-batch, counted from 0 in the run.
        partial: whether it holds fewer micro-batches than N.
    """

    number: int
    epoch: int
    indices: tuple[int, ...]
    start: int
    partial: bool

    @property
    def run_indices(self) -> range:
        """Its micro-batches, counted from 0 over the run."""
        return range(self.start, self.start + len(self.indices))


def windows(micro_batches: int, epochs: int, accum: int) -> list[Window]:
    """The windows of a run of ``epochs`` epochs of ``micro_batches`` each."""
    found: list[Window] = []
    for epoch in range(epochs):
        for first in range(0, micro_batches, accum):
            indices = tuple(range(first, min(first + accum, micro_batches)))
            found.append(
                Window(
                    number=len(found) + 1,
                    epoch=epoch + 1,
                    indices=indices,
                    start=epoch * micro_batches + first,
                    partial=len(indices) < accum,
                )
            )
    return found


def clipped(gradient: Arrays, clip: float | None) -> Arrays:
    """The gradient, shrunk to a global norm of ``clip`` where it is longer."""
    norm = global_norm(gradient)
    factor = 1.0 if clip is None or norm <= clip else clip / norm
    return {name: g * factor for name, g in gradient.items()}


def global_norm(arrays: Arrays) -> float:
    """The Euclidean norm of all of them as one vector."""
    return float(
        np.sqrt(sum((a.astype(np.float64) ** 2).sum() for a in arrays.values()))
    )


# ---- the loss scale


@dataclass
class LossScale:
    """A loss scale as ``amp.DynamicLossScaler`` keeps it; fixed without a window.

    Attributes:
        value: S.
        factor: by what S grows and shrinks.
        window: windows without overflow after which S grows, or None if it is fixed.
        counter: windows without overflow so far.
    """

    value: float
    factor: float = 2.0
    window: int | None = None
    counter: int = 0

    def adjust(self, finite: bool) -> None:
        """Take note of a window: once, at its end. S stays finite and at least 1."""
        if self.window is None:
            return
        if not finite:
            self.value = max(1.0, self.value / self.factor)
            self.counter = 0
            return
        if self.counter == self.window - 1:
            grown = self.value * self.factor
            self.value = grown if grown < 3.4e38 else self.value
        self.counter = (self.counter + 1) % self.window


# ---- the optimizers


@dataclass(frozen=True)
class Rule:
    """An optimizer and its settings, with MindSpore's names of its state.

    Attributes:
        kind: sgd, momentum, adam, or adamw (decoupled decay, before the update), or
            adam_weight_decay (no bias correction, decay in the update).
        decay: weight decay of each parameter; added to the gradient but for the last
            two kinds.
    """

    kind: str
    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    decay: dict[str, float] = field(default_factory=dict)

    def update(
        self, parameters: Arrays, state: Arrays, gradient: Arrays, lr: float
    ) -> tuple[Arrays, Arrays]:
        """One update, in float64; ``state`` goes by MindSpore's names of it.

        Returns:
            the new parameters and the new state, of which entries that this rule does
            not change are the old ones.
        """
        step = _UPDATES[self.kind]
        new_state = {name: np.asarray(v, np.float64) for name, v in state.items()}
        new_state["global_step"] = new_state["global_step"] + 1
        if self.kind in ("adam", "adamw"):
            new_state["beta1_power"] = new_state["beta1_power"] * self.beta1
            new_state["beta2_power"] = new_state["beta2_power"] * self.beta2
        new = {
            name: step(
                self, name, value.astype(np.float64), gradient[name], new_state, lr
            )
            for name, value in parameters.items()
        }
        return new, new_state

    def received(
        self, before: Arrays, after: Arrays, state: Arrays, lr: float
    ) -> Arrays:
        """The gradient that the first update of a run was given, from what it left.

        That is the parameters ``before`` and ``after`` it, and the state after it.
        """
        found = {}
        for name, start in before.items():
            change = (start - after[name]) / lr
            decay = 0.0 if self.decoupled else self.decay[name]
            found[name] = _received(self, name, change, state) - decay * start
        return found

    @property
    def decoupled(self) -> bool:
        """Whether weight decay stays out of the gradient."""
        return self.kind in ("adamw", "adam_weight_decay")


def _sgd(rule: Rule, name: str, w: Array, g: Array, state: Arrays, lr: float) -> Array:
    g = g + rule.decay[name] * w
    if rule.momentum:
        key = f"accum.{name}"
        first = state[f"stat.{name}"].max() > 0
        damped = g if first else (1 - rule.dampening) * g
        state[key] = damped if first else rule.momentum * state[key] + damped
        state[f"stat.{name}"] = np.zeros_like(state[f"stat.{name}"])
        g = g + rule.momentum * state[key] if rule.nesterov else state[key]
    return np.asarray(w - lr * g)


def _momentum(
    rule: Rule, name: str, w: Array, g: Array, state: Arrays, lr: float
) -> Array:
    g = g + rule.decay[name] * w
    key = f"moments.{name}"
    state[key] = rule.momentum * state[key] + g
    return np.asarray(w - lr * state[key])


def _moments(
    rule: Rule, g: Array, state: Arrays, first: str, second: str
) -> tuple[Array, Array]:
    state[first] = rule.beta1 * state[first] + (1 - rule.beta1) * g
    state[second] = rule.beta2 * state[second] + (1 - rule.beta2) * g**2
    return state[first], state[second]


def _adam(rule: Rule, name: str, w: Array, g: Array, state: Arrays, lr: float) -> Array:
    if rule.decoupled:
        w = w * (1 - lr * rule.decay[name])
    else:
        g = g + rule.decay[name] * w
    m, v = _moments(rule, g, state, f"moment1.{name}", f"moment2.{name}")
    if rule.nesterov:
        m = rule.beta1 * m + (1 - rule.beta1) * g
    rate = lr * np.sqrt(1 - state["beta2_power"]) / (1 - state["beta1_power"])
    return np.asarray(w - rate * m / (np.sqrt(v) + rule.eps))


def _adam_weight_decay(
    rule: Rule, name: str, w: Array, g: Array, state: Arrays, lr: float
) -> Array:
    m, v = _moments(rule, g, state, f"adam_m.{name}", f"adam_v.{name}")
    return np.asarray(w - lr * (m / (np.sqrt(v) + rule.eps) + rule.decay[name] * w))


_UPDATES = {
    "sgd": _sgd,
    "momentum": _momentum,
    "adam": _adam,
    "adamw": _adam,
    "adam_weight_decay": _adam_weight_decay,
}


def _received(rule: Rule, name: str, change: Array, state: Arrays) -> Array:
    """What the state holds of the gradient after one update; ``change`` is over lr."""
    if rule.kind == "momentum":
        return state[f"moments.{name}"]
    if rule.kind == "sgd":
        return state[f"accum.{name}"] if rule.momentum else change
    first = "adam_m" if rule.kind == "adam_weight_decay" else "moment1"
    return np.asarray(state[f"{first}.{name}"] / (1 - rule.beta1))


# ---- learning rates


def learning_rate(
    schedule: str, lr: float, update: int, total: int, warmup: int = 0
) -> float:
    """The rate of an update, counted from 0, of ``total`` updates.

    Linear warm-up over ``warmup`` updates, then constant, half a cosine to 0 over what
    is left, or a tenth from half of ``total`` on and a hundredth from three quarters.
    """
    if update < warmup:
        return lr * (update + 1) / warmup
    if schedule == "cosine":
        progress = (update - warmup) / (total - warmup)
        return lr * 0.5 * (1 + float(np.cos(np.pi * progress)))
    if schedule == "step":
        return lr * (
            1.0 if 2 * update < total else 0.1 if 4 * update < 3 * total else 0.01
        )
    return lr
