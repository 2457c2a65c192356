"""What all tests share: the marker for hardware, and which runs belong together."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest


@functools.cache
def has_npu() -> bool:
    """Whether MindSpore finds an Ascend NPU; asked in a process of its own."""
    code = "import mindspore as ms; print('NPU', ms.get_context('device_target'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    return "NPU Ascend" in done.stdout


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    marked = [item for item in items if item.get_closest_marker("ascend")]
    if marked and not has_npu():
        skip = pytest.mark.skip(reason="no Ascend NPU on this machine")
        for item in marked:
            item.add_marker(skip)
