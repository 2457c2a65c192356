"""What a check finds: one verdict per property, with what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "fail", "not applicable", "not judged"]


@dataclass(frozen=True)
class Result:
    """The answer of a check.

    Attributes:
        verdict: ``not judged`` counts as not passed, ``not applicable`` does not count.
        measured: what was seen, with numbers.
        reason: why it failed, does not apply or could not be judged.
        bound: what was allowed, if there was a number to it.
    """

    verdict: Verdict
    measured: str = ""
    reason: str = ""
    bound: str = ""


class Stop(Exception):
    """Ends a check before it could measure anything."""

    verdict: Verdict

    @property
    def result(self) -> Result:
        """The answer that it stands for."""
        return Result(self.verdict, reason=str(self))


class NotApplicable(Stop):
    """The script does nothing that the property speaks of."""

    verdict = "not applicable"


class NotJudged(Stop):
    """The property applies, and what it needs could not be seen."""

    verdict = "not judged"


class Failed(Stop):
    """The script broke the property in a way that ended its run."""

    verdict = "fail"
