"""Black with a mode of ours, so that a script is the same on every machine."""

from __future__ import annotations

import black
from black.mode import TargetVersion

# Given in full: a pyproject.toml where msgen is called has no say in it.
MODE = black.Mode(target_versions={TargetVersion.PY39}, line_length=88)


def format_source(text: str) -> str:
    """The text as Black writes it.

    Raises:
        black.InvalidInput: if it is no Python, which would be a fault of a template.
    """
    return black.format_str(text, mode=MODE)
