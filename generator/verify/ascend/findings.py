"""What the static check finds."""

from __future__ import annotations

from collections.abc import Sequence
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
        return self.at([self.line])

    def at(self, lines: Sequence[int]) -> str:
        """The finding as a line of text, for all the lines that it is about."""
        word = "line" if len(lines) == 1 else "lines"
        where = f"{self.file} {word} {', '.join(map(str, lines))}".strip()
        use = f"; {self.instead}" if self.instead else ""
        return f"{where}: {self.name}: {self.problem}{use}"
