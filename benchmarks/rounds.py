"""Measuring side by side: every round runs each contestant once, one after the other.

What a noisy machine does to a round it does to all of them, so that ratios are taken
within a round; medians of those are what is reported.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# A script sets these itself, where nobody has set them; a worker starts without.
TUNING = ("ONEDNN_MAX_CPU_ISA", "MS_DEV_JIT_PIPELINE")
CAP_ONLY = {"MS_DEV_JIT_PIPELINE": "1"}
DEFAULTS = {"ONEDNN_MAX_CPU_ISA": "DEFAULT", "MS_DEV_JIT_PIPELINE": "1"}


class Worker:
    """A worker process, which sleeps while others are measured."""

    def __init__(
        self,
        request: dict[str, Any],
        folder: Path,
        env: Mapping[str, str] | None = None,
    ):
        environ = {k: v for k, v in os.environ.items() if k not in TUNING}
        environ |= {"GLOG_v": "3", "PYTHONPATH": str(ROOT)}
        self.log = open(folder / "worker.log", "a")  # noqa: SIM115, closed on exit
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", json.dumps(request)],
            cwd=folder,
            env=environ | dict(env or {}),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )

    def run(self, variant: str, length: int, windows: int) -> list[float]:
        """Seconds of each window.

        Raises:
            RuntimeError: if the worker could not; it says why.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps([variant, length, windows]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the worker ended; see {self.log.name}")
        self.process.send_signal(signal.SIGSTOP)
        answer = json.loads(line)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return [float(seconds) for seconds in answer]

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()


@dataclass
class Contestant:
    """What is measured against others, and what was measured so far."""

    worker: Worker
    variant: str
    length: int
    windows: int  # a round
    first: float = 0.0  # seconds of the first call, which compiles
    rounds: list[list[float]] = field(default_factory=list)
    error: str = ""

    def warm_up(self) -> None:
        try:
            self.first = self.worker.run(self.variant, self.length, 1)[0]
            self.worker.run(self.variant, self.length, 1)
        except RuntimeError as error:
            self.error = str(error)

    def round(self) -> None:
        if not self.error:
            seconds = self.worker.run(self.variant, self.length, self.windows)
            self.rounds.append(seconds)

    @property
    def medians(self) -> list[float]:
        return [statistics.median(seconds) for seconds in self.rounds]

    def summary(self) -> dict[str, Any]:
        """Median, spread and tail of all windows, in seconds."""
        if self.error:
            return {"error": self.error}
        seconds = sorted(second for one in self.rounds for second in one)
        return {
            "median": statistics.median(seconds),
            "quartiles": [seconds[len(seconds) // 4], seconds[len(seconds) * 3 // 4]],
            "p90_to_median": p90(seconds) / statistics.median(seconds),
            "windows": len(seconds),
            "first": self.first,
        }


def p90(seconds: list[float]) -> float:
    """The time that nine windows of ten do not exceed."""
    return sorted(seconds)[int(0.9 * len(seconds))]


def ratio(one: Contestant, other: Contestant) -> dict[str, Any] | None:
    """How much of the other's time one takes: median and range of the rounds."""
    if one.error or other.error:
        return None
    ratios = [a / b for a, b in zip(one.medians, other.medians, strict=True)]
    return {
        "median": statistics.median(ratios),
        "least": min(ratios),
        "most": max(ratios),
    }


def race(contestants: list[Contestant], rounds: int) -> None:
    """Warm all up, then measure so many rounds."""
    for contestant in contestants:
        contestant.warm_up()
    for _ in range(rounds):
        for contestant in contestants:
            contestant.round()
