"""What all tests share: the marker for hardware, and which runs belong together."""

from __future__ import annotations

import pytest

from generator.verify.ascend.host import has_npu


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    marked = [item for item in items if item.get_closest_marker("ascend")]
    if marked and not has_npu():
        skip = pytest.mark.skip(reason="no Ascend NPU on this machine")
        for item in marked:
            item.add_marker(skip)
