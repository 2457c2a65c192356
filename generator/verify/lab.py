"""Where checks get their runs: each case is run once, whoever asks for it first."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from generator.verify.case import Case
from generator.verify.facts import Facts
from generator.verify.process import Driver, Run
from generator.verify.result import Failed, NotJudged

TIMEOUT = 60.0  # seconds for one run; a probe takes two or three

# Of the probes' runs. Adam divides by the root of a gradient's square: where a gradient
# is nearly zero, its rounding is the rate times larger in the weight.
LR = 0.01
# What a dynamic scale starts with: a power of two, far from float16's largest number.
SCALE = 256.0


class Drivers:
    """A few driver processes that labs share, a case at a time."""

    def __init__(self, folder: Path, count: int = 1):
        self.all = [Driver(folder / f"driver{i}") for i in range(count)]
        self.free: queue.SimpleQueue[Driver] = queue.SimpleQueue()
        for driver in self.all:
            self.free.put(driver)

    @contextmanager
    def borrow(self) -> Iterator[Driver]:
        """A driver for one case."""
        driver = self.free.get()
        try:
            yield driver
        finally:
            self.free.put(driver)

    def stop(self) -> None:
        """End all of them."""
        for driver in self.all:
            driver.stop()


class Lab:
    """One script, its facts, and the runs that were made of it.

    Args:
        script: the file.
        drivers: who runs it.
        device: what ``--device`` gets, or None for the script's own default.
        say: told of every run, for people who wait.
    """

    def __init__(
        self,
        script: Path,
        drivers: Drivers,
        device: str | None = None,
        say: Callable[[str], None] = lambda text: None,
    ):
        self.script = script
        self.drivers = drivers
        self.device = device
        self.say = say
        self.runs: dict[Case, Future[Run]] = {}
        self.lock = threading.Lock()

    def attempt(self, case: Case, timeout: float = TIMEOUT) -> Run:
        """The run of a case, however it ended."""
        if self.device:
            case = replace(case, arguments=(*case.arguments, "--device", self.device))
        with self.lock:
            first = case not in self.runs
            future = self.runs.setdefault(case, Future())
        if first:
            try:
                with self.drivers.borrow() as driver:
                    future.set_result(driver.run(self.script, case, timeout))
            except BaseException as error:
                future.set_exception(error)
        return future.result()

    def run(self, case: Case, timeout: float = TIMEOUT) -> Run:
        """The run of a case that has to end well.

        Raises:
            Failed: if it does not.
        """
        run = self.attempt(case, timeout)
        if run.status != 0:
            raise Failed(f"the run ended with status {run.status}: {run.message}")
        return run

    @cached_property
    def loaded(self) -> dict[str, Any]:
        """What the module says of itself before it is run.

        Raises:
            Failed: if it cannot be imported.
        """
        with self.drivers.borrow() as driver:
            run = driver.load(self.script, TIMEOUT)
        if run.status != 0:
            raise Failed(f"{self.script.name} cannot be imported: {run.message}")
        return run.answer

    @cached_property
    def facts(self) -> Facts:
        """What the script does, seen in its plainest run."""
        loaded = self.loaded
        return Facts.of(loaded, self.run(self.base).answer)

    @property
    def accum(self) -> int:
        """N, which the sizes of every case depend on."""
        return int(self.loaded["constants"].get("ACCUM", 1))

    @property
    def base(self) -> Case:
        """Two epochs of two whole windows and a part of one, unevenly filled."""
        return Case(sizes=self.sizes(2), epochs=2, lr=LR, scale=SCALE)

    def sizes(self, whole: int) -> tuple[int, ...]:
        """Items of an epoch's micro-batches: whole windows, then a part of one.

        Two sizes only, since graph mode compiles for every one.
        """
        left = min(2, self.accum - 1) if self.accum > 1 else 1
        count = whole * self.accum + left
        return tuple(2 if index % 3 == 1 else 4 for index in range(count))

    def needs_flag(self, name: str) -> None:
        """Stop a check that cannot do without an option of the script.

        Raises:
            NotJudged: if the script has no such option.
        """
        if name not in self.loaded["flags"]:
            flag = "--" + name.replace("_", "-")
            raise NotJudged(f"the script has no option {flag}")
