# mypy: ignore-errors
"""Must fail: max pooling has no bfloat16 kernel on Ascend."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

ms.set_device("Ascend")


@ms.jit
def pool(x):
    """Pool images."""
    return ops.max_pool2d(x, 2)


pool(Tensor(np.ones((2, 3, 8, 8), np.float32)).astype(ms.bfloat16))
