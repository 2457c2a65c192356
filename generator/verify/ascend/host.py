"""Whether this machine has an Ascend NPU."""

from __future__ import annotations

import functools
import subprocess
import sys

CODE = "import mindspore as ms; print('NPU', ms.get_context('device_target'))"


@functools.cache
def has_npu() -> bool:
    """Whether MindSpore finds an NPU; asked in a process of its own, once."""
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False
    )
    return "NPU Ascend" in done.stdout
