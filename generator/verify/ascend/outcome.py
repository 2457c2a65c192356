"""What a dry run comes to."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.Enum):
    """The three ends of a dry run."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNCHECKABLE = "UNCHECKABLE"


@dataclass(frozen=True)
class Outcome:
    """The verdict on one script.

    Attributes:
        reason: why it is not a PASS, in a line; for a PASS what was seen.
        kernels: Ascend kernel entries that MindSpore selected; operators that PyNative
            mode dispatches to aclnn one by one are not counted.
        mindspore: the version that judged, or "" if none was found.
        seconds: how long the run took.
        log: what the run printed, for whoever wants to look into it.
    """

    verdict: Verdict
    reason: str
    kernels: int = 0
    mindspore: str = ""
    seconds: float = 0.0
    log: str = ""

    def __str__(self) -> str:
        return f"{self.verdict.value}: {self.reason}"


def uncheckable(reason: str, mindspore: str = "") -> Outcome:
    """The outcome of what cannot be judged here."""
    return Outcome(Verdict.UNCHECKABLE, reason, mindspore=mindspore)
