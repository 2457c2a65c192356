"""The one small tree of errors; the command line catches it in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a request.

    Attributes:
        flags: the options concerned, as a user would type them.
        reason: why it cannot be done, one or two sentences.
        fix: changes to the request that lead to the nearest one that works; keys are
            fields of :class:`~generator.spec.TrainingSpec`, or ``output`` and
            ``force`` of the command line.
    """

    flags: str
    reason: str
    fix: dict[str, Any] = field(default_factory=dict)


class MsgenError(Exception):
    """Base of what msgen raises on purpose."""


class Refused(MsgenError):
    """The request cannot be carried out. Nothing was written.

    Attributes:
        problems: everything that is wrong, in the order of the options.
        suggestion: the nearest command that works, or None if none is known.
    """

    def __init__(self, problems: Sequence[Problem], suggestion: str | None = None):
        self.problems = tuple(problems)
        self.suggestion = suggestion
        super().__init__(self.message())

    def message(self) -> str:
        """The whole answer as text, ready for a terminal."""
        count = len(self.problems)
        lines = [f"nothing was written: {count} problem{'s' * (count > 1)}"]
        for problem in self.problems:
            lines += ["", f"  {problem.flags}", f"      {problem.reason}"]
        if self.suggestion:
            lines += ["", "This works:", f"  {self.suggestion}"]
        return "\n".join(lines)
