"""Training in plain NumPy and float64: what a script's numbers are held against.

It shares no code with MindSpore: forward, gradient and update are written out here.
"""

from __future__ import annotations

import numpy as np

FEATURES, HIDDEN, CLASSES = 6, 5, 3


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    """Starting weights of the test network, float32 as the scripts keep them."""
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


def micro_batches(
    sizes: list[int], seed: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """One (data, label) pair per size: (n, FEATURES) float32 and (n,) int32."""
    rng = np.random.default_rng(seed + 100)
    return [
        (
            rng.normal(size=(n, FEATURES)).astype(np.float32),
            rng.integers(CLASSES, size=n).astype(np.int32),
        )
        for n in sizes
    ]


def loss_and_gradient(
    parameters: dict[str, np.ndarray], data: np.ndarray, label: np.ndarray
) -> tuple[float, dict[str, np.ndarray]]:
    """Mean cross entropy of dense → tanh → dense, and its gradient, in float64."""
    p = {name: value.astype(np.float64) for name, value in parameters.items()}
    x = data.astype(np.float64)
    hidden = np.tanh(x @ p["hidden.weight"].T + p["hidden.bias"])
    logits = hidden @ p["head.weight"].T + p["head.bias"]
    logits = logits - logits.max(axis=1, keepdims=True)
    probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    count = np.arange(len(label))
    loss = -np.log(probability[count, label]).mean()
    delta = probability.copy()
    delta[count, label] -= 1
    delta /= len(label)
    back = (delta @ p["head.weight"]) * (1 - hidden**2)
    return float(loss), {
        "hidden.weight": back.T @ x,
        "hidden.bias": back.sum(axis=0),
        "head.weight": delta.T @ hidden,
        "head.bias": delta.sum(axis=0),
    }


def windows(sizes: list[int], accum: int) -> list[list[int]]:
    """Indices of the micro-batches of each window of an epoch."""
    index = list(range(len(sizes)))
    return [index[start : start + accum] for start in range(0, len(index), accum)]


def train(
    sizes: list[int],
    accum: int,
    *,
    epochs: int = 1,
    lr: float = 0.1,
    momentum: float = 0.0,
    clip: float | None = None,
    skipped: frozenset[int] = frozenset(),
    seed: int = 0,
) -> tuple[dict[str, np.ndarray], list[float]]:
    """Train one update per window on all of the window's items as one batch.

    Args:
        skipped: windows of the run, counted from 0, that are dropped.

    Returns:
        the weights and the loss of every window.
    """
    current = {k: v.astype(np.float64) for k, v in weights(seed).items()}
    velocity = {k: np.zeros_like(v) for k, v in current.items()}
    batches = micro_batches(sizes, seed)
    losses, number = [], 0
    for _ in range(epochs):
        for window in windows(sizes, accum):
            data = np.concatenate([batches[i][0] for i in window])
            label = np.concatenate([batches[i][1] for i in window])
            loss, gradient = loss_and_gradient(current, data, label)
            losses.append(loss)
            if number not in skipped:
                norm = np.sqrt(sum((g**2).sum() for g in gradient.values()))
                factor = 1.0 if clip is None else min(1.0, clip / norm)
                for name, g in gradient.items():
                    velocity[name] = momentum * velocity[name] + g * factor
                    current[name] = current[name] - lr * velocity[name]
            number += 1
    return current, losses
