# mypy: ignore-errors
"""Must fail: MindSpore runs this operator on the CPU instead, and says nothing."""

import mindspore as ms
import numpy as np
from mindspore import Tensor
from mindspore.ops import operations

ms.set_device("Ascend")


@ms.jit
def decompose(x):
    """Factor a matrix."""
    return operations.Cholesky()(x)


decompose(Tensor(np.eye(4, dtype=np.float32)))
