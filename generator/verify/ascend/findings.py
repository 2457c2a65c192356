"""What the static check finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, order=True)
class Finding:
    """One thing about one line of a script.

    Attributes:
        file: the module beside the script that it is in, or "" for the script.
        kind: ``fail`` for what is wrong; ``warn`` for what works in this MindSpore and
            is announced to go; ``unknown`` for a call that was not judged.
        name: what it is about, as the script has it.
        problem: what is wrong with it, or why it was not judged.
        instead: what to use, or "".
    """

    file: str
    line: int
    kind: Literal["fail", "warn", "unknown"]
    name: str
    problem: str
    instead: str = ""

    def __str__(self) -> str:
        use = f"; {self.instead}" if self.instead else ""
        where = f"{self.file} line {self.line}".strip()
        return f"{where}: {self.name}: {self.problem}{use}"
