"""Driver processes: started, given cases, watched, and stopped with their children."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from generator.verify.case import Case
from generator.verify.records import Recorded

LOG = "driver.log"


@dataclass(frozen=True)
class Run(Recorded):
    """What one run of a script left behind.

    Attributes:
        status: its exit status; negative if a signal ended the process.
        message: what it said when it failed, else empty.
        answer: what the driver saw of it.
        output: its output directory.
        log: what it printed.
    """

    status: int
    message: str
    answer: dict[str, Any]
    output: Path
    log: str = ""
    case: Case = field(default_factory=Case)

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """What was seen: ``start.net.…``, ``window.opt.…`` with a row per window, …"""
        import numpy as np

        path = self.output / "seen.npz"
        if not path.is_file():
            return {}
        with np.load(path) as seen:
            return dict(seen)

    def part(self, prefix: str, window: int | None = None) -> dict[str, Any]:
        """The arrays of a prefix without it; of one window, counted from 0."""
        return {
            name[len(prefix) :]: value if window is None else value[window]
            for name, value in self.arrays.items()
            if name.startswith(prefix)
        }


class Driver:
    """A driver process; a new one is started when one crashed or hung.

    Args:
        folder: where it works; MindSpore leaves files where it runs.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.here = os.getcwd()
        self.process: subprocess.Popen[str] | None = None
        self.runs = 0

    def load(self, script: Path, timeout: float) -> Run:
        """Import a script; its answer holds its constants and flags."""
        return self._ask(Case(), script, timeout, do="load")

    def run(self, script: Path, case: Case, timeout: float) -> Run:
        """Run a script as the case says."""
        return self._ask(case, script, timeout, do="run")

    def _ask(self, case: Case, script: Path, timeout: float, do: str) -> Run:
        self.runs += 1
        output = Path(case.output or self.folder.resolve() / f"run{self.runs}")
        request = {
            "do": do,
            "script": str(script.resolve()),
            "output": str(output),
            "here": self.here,
        }
        process = self._started()
        try:
            assert process.stdin is not None
            process.stdin.write(case.line(**request))
            process.stdin.flush()
            line = self._answer(process, timeout)
        except (BrokenPipeError, TimeoutError) as error:
            self.stop()
            hung = isinstance(error, TimeoutError)
            status = -int(signal.SIGKILL) if hung else process.returncode
            message = (
                f"did not end within {timeout:g} s" if hung else self._crash(status)
            )
            return Run(status, message, {}, output, self._log(), case)
        answer = json.loads(line)
        message = answer.get("message", "")
        return Run(answer["status"], message, answer, output, self._log(), case)

    def _started(self) -> subprocess.Popen[str]:
        if self.process is not None and self.process.poll() is None:
            return self.process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "generator.verify.driver"],
            cwd=self.folder,
            env=_environment(),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that what it starts ends with it
        )
        return self.process

    def _answer(self, process: subprocess.Popen[str], timeout: float) -> str:
        assert process.stdout is not None
        end = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(max(0.0, end - time.monotonic())):
                raise TimeoutError
        line = process.stdout.readline()
        if not line.endswith("\n"):
            process.wait()
            raise BrokenPipeError
        return line

    def _log(self) -> str:
        path = self.folder / LOG
        return path.read_text(errors="replace") if path.is_file() else ""

    def _crash(self, status: int) -> str:
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        lines = [line for line in self._log().splitlines() if line.strip()]
        last = f": {lines[-1].strip()}" if lines else ""
        return f"ended the process ({name}){last}"

    def stop(self) -> None:
        """End the process and all that it started."""
        process, self.process = self.process, None
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue


def _environment() -> dict[str, str]:
    package = str(Path(__file__).resolve().parent.parent.parent)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "GLOG_v": "3",  # MindSpore's notes of the machine are not looked at
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }
