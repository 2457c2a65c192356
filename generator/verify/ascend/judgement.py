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
# The kernels of one window, its update and an evaluation are those of all.
SHORT = ("--device", "Ascend", "--max-updates", "1")


@dataclass(frozen=True)
class Calls:
    """What is said of a script's calls of MindSpore.

    Attributes:
        findings: what is wrong with them, may be soon, or is not known.
    """

    findings: list[Finding]

    @property
    def passed(self) -> bool:
        """Whether none is wrong or unknown; an announced deprecation still works."""
        return all(finding.kind == "warn" for finding in self.findings)

    def text(self) -> str:
        """For people: how many of each kind, and a line per finding."""
        kinds = Counter(finding.kind for finding in self.findings)
        counts = f"{kinds['fail']} wrong, {kinds['unknown']} not judged"
        counts += f", {kinds['warn']} warnings"
        verdict = "PASS" if self.passed else "FAIL"
        return "\n".join([f"calls    {verdict}: {counts}", *self._finding_lines()])

    def _finding_lines(self) -> Iterator[str]:
        """One for all the lines of the script that the same is to be said of."""
        lines: dict[Finding, list[int]] = {}
        for finding in self.findings:
            lines.setdefault(replace(finding, line=0), []).append(finding.line)
        for finding, numbers in lines.items():
            yield f"  {finding.kind}: {finding.at(numbers)}"

    def data(self) -> list[dict[str, Any]]:
        """For programs."""
        return [asdict(finding) for finding in self.findings]


@dataclass(frozen=True)
class Judgement:
    """What can be said of a script for Ascend without an NPU.

    Attributes:
        calls: what its calls of MindSpore came to.
        outcome: what its dry run came to.
    """

    calls: Calls
    outcome: Outcome

    @property
    def passed(self) -> bool:
        """Whether both layers passed."""
        return self.calls.passed and self.outcome.verdict is Verdict.PASS

    def text(self) -> str:
        """For people: what was not done, and what each layer says."""
        return f"{NOT_EXECUTED}\n{self.calls.text()}\ndry run  {self.outcome}"

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "executed_on_npu": False,
            "passed": self.passed,
            "calls": self.calls.data(),
            "dry_run": {
                "verdict": self.outcome.verdict.value,
                "reason": self.outcome.reason,
                "kernels": self.outcome.kernels,
                "mindspore": self.outcome.mindspore,
            },
        }


def judge_calls(script: Path) -> Calls:
    """Judge a script by its calls of MindSpore."""
    return Calls(check_calls(script, "Ascend"))


def judge(script: Path) -> Judgement:
    """Judge a script of msgen's by its calls and by a dry run of one update."""
    return Judgement(judge_calls(script), dry_run(script.resolve(), SHORT))
