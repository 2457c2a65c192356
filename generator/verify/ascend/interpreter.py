"""The Python whose MindSpore judges."""

from __future__ import annotations

import os


def located(python: str) -> str:
    """The path of an interpreter, good in any folder; links in it stay.

    A virtual environment's Python is a link, and is another one when it is followed.
    """
    return os.path.abspath(python) if os.path.dirname(python) else python
