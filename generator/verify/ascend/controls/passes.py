# mypy: ignore-errors
"""Must pass: a small train step in float16, of operators that Ascend has."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, amp, nn

ms.set_device("Ascend")
network = amp.auto_mixed_precision(nn.Dense(8, 4), "O2")
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Momentum(network.trainable_params(), 0.1, 0.9)


def forward(data, label):
    """The loss of a micro-batch."""
    return loss_fn(network(data), label)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(data, label):
    """Make an update."""
    loss, grads = grad_fn(data, label)
    finite = amp.all_finite(grads)
    if finite:
        optimizer(grads)
    return loss, finite


loss, finite = train_step(
    Tensor(np.ones((4, 8), np.float32)), Tensor(np.zeros(4, np.int32))
)
if not finite:
    raise SystemExit("the runner's answer to the finite test has not come through")
