"""The forms of a training step that the generated scripts are compared with.

Each takes what a script's step is made of and returns a function that makes one update
from a list of micro-batches and returns its loss as a device value. They are written
with care, each in the form in which it is usually shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
from mindspore import amp, nn, ops

Batch = tuple[ms.Tensor, ms.Tensor]
Window = Callable[[Sequence[Batch]], ms.Tensor]


def _grad_fn(network: Any, loss_fn: Any, parameters: Any, scaler: Any) -> Any:
    """(data, label) → ((the loss to differentiate, the real one), gradients)."""

    def forward(data: Any, label: Any) -> Any:
        loss = loss_fn(network(data), label)
        scaled = loss if scaler is None else scaler.scale(loss)
        return scaled, loss

    return ms.value_and_grad(forward, None, parameters, has_aux=True)


def plain(network: Any, loss_fn: Any, optimizer: Any, scaler: Any) -> Window:
    """One jitted step a batch: without accumulation, or on one large batch."""
    grad_fn = _grad_fn(network, loss_fn, optimizer.parameters, scaler)

    @ms.jit
    def step(data: Any, label: Any) -> Any:
        (_, loss), grads = grad_fn(data, label)
        if scaler is not None:
            grads = scaler.unscale(grads)
            finite = amp.all_finite(grads)
            if finite:
                optimizer(grads)
            scaler.adjust(finite)
        else:
            optimizer(grads)
        return loss

    return lambda batches: step(*batches[0])


def lists(network: Any, loss_fn: Any, optimizer: Any, scaler: Any) -> Window:
    """Jitted gradients that are summed in Python lists: the form of most tutorials."""
    grad_step = ms.jit(_grad_fn(network, loss_fn, optimizer.parameters, scaler))

    def window(batches: Sequence[Batch]) -> ms.Tensor:
        total: list[Any] = []
        for data, label in batches:
            (_, loss), grads = grad_step(data, label)
            total = (
                [a + b for a, b in zip(total, grads, strict=True)]
                if total
                else list(grads)
            )
        mean = tuple(grad / len(batches) for grad in total)
        if scaler is None:
            optimizer(mean)
            return loss
        mean = scaler.unscale(mean)
        finite = amp.all_finite(mean)
        if finite:
            optimizer(mean)
        scaler.adjust(finite)
        return loss

    return window


class Accumulator:
    """Sums gradients and calls the optimizer when a window is full."""

    def __init__(self, optimizer: Any, length: int):
        self.optimizer = optimizer
        self.length = length
        self.sums = optimizer.parameters.clone(prefix="sum", init="zeros")
        self.zeros = optimizer.parameters.clone(prefix="zero", init="zeros")
        self.done = ms.Parameter(ms.Tensor(0, ms.int32), name="micro_batches_done")
        self.one = ms.Tensor(1, ms.int32)
        self.hyper_map = ops.HyperMap()

    def __call__(self, grads: Any) -> bool:
        self.hyper_map(ops.assign_add, self.sums, grads)
        ops.assign_add(self.done, self.one)
        if self.done % self.length == 0:
            self.optimizer(self.sums)
            self.hyper_map(ops.assign, self.sums, self.zeros)
        return True


def accumulator(
    network: Any, loss_fn: Any, optimizer: Any, scaler: Any, length: int
) -> Window:
    """An accumulator that a jitted step calls: the form in MindSpore's documentation.

    The loss is divided by the window's ``length`` before it is differentiated.
    """

    def shared(logits: Any, label: Any) -> Any:
        return loss_fn(logits, label) / length

    grad_fn = _grad_fn(network, shared, optimizer.parameters, scaler)
    accumulate = Accumulator(optimizer, length)

    @ms.jit
    def step(data: Any, label: Any) -> Any:
        (_, loss), grads = grad_fn(data, label)
        if scaler is not None:
            grads = scaler.unscale(grads)
            finite = amp.all_finite(grads)
            if finite:
                accumulate(grads)
            scaler.adjust(finite)
        else:
            accumulate(grads)
        return loss

    def window(batches: Sequence[Batch]) -> ms.Tensor:
        for data, label in batches:
            loss = step(data, label)
        return loss

    return window


def model_train(network: Any, loss_fn: Any, optimizer: Any) -> ms.train.Model:
    """MindSpore's own training loop and train cell, without accumulation."""
    return ms.train.Model(network, loss_fn=loss_fn, optimizer=optimizer)


def momentum(network: nn.Cell) -> nn.Optimizer:
    """The optimizer of all that are compared."""
    return nn.Momentum(network.trainable_params(), 0.001, 0.9)
