"""Both layers on one script, and how that is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from generator.verify.ascend.dryrun import dry_run
from generator.verify.ascend.findings import Finding
from generator.verify.ascend.outcome import Outcome, Verdict
from generator.verify.ascend.static import check_calls

NOT_EXECUTED = "There is no NPU here: nothing was executed on one."
# The kernels of two updates are those of all; no count of dropped windows is reached.
SHORT = ("--device", "Ascend", "--max-updates", "2")


@dataclass(frozen=True)
class Judgement:
    """What can be said of a script for Ascend without an NPU.

    Attributes:
        calls: what is wrong with its calls of MindSpore, may be soon, or is not known.
        outcome: what its dry run came to.
    """

    calls: list[Finding]
    outcome: Outcome

    @property
    def passed(self) -> bool:
        """Whether both layers passed; an announced deprecation still works."""
        wrong = [finding for finding in self.calls if finding.kind != "warn"]
        return not wrong and self.outcome.verdict is Verdict.PASS

    def text(self) -> str:
        """For people: a line per layer, and one per finding."""
        kinds = Counter(finding.kind for finding in self.calls)
        wrong = kinds["fail"] + kinds["unknown"]
        counts = f"{kinds['fail']} wrong, {kinds['unknown']} not judged"
        counts += f", {kinds['warn']} warnings"
        lines = [
            NOT_EXECUTED,
            f"calls    {'FAIL' if wrong else 'PASS'}: {counts}",
            *self._finding_lines(),
            f"dry run  {self.outcome}",
        ]
        return "\n".join(lines)

    def _finding_lines(self) -> Iterator[str]:
        """One for all the lines of the script that the same is to be said of."""
        lines: dict[Finding, list[int]] = {}
        for finding in self.calls:
            lines.setdefault(replace(finding, line=0), []).append(finding.line)
        for finding, numbers in lines.items():
            yield f"  {finding.kind}: {finding.at(numbers)}"

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "executed_on_npu": False,
            "passed": self.passed,
            "calls": [asdict(finding) for finding in self.calls],
            "dry_run": {
                "verdict": self.outcome.verdict.value,
                "reason": self.outcome.reason,
                "kernels": self.outcome.kernels,
                "mindspore": self.outcome.mindspore,
            },
        }


def judge(script: Path) -> Judgement:
    """Judge a script of msgen's by its calls and by a dry run of two updates."""
    return Judgement(check_calls(script, "Ascend"), dry_run(script.resolve(), SHORT))
