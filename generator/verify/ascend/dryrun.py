"""Running a script on MindSpore's Ascend plugin, with stand-ins for CANN."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.verify.ascend.outcome import Outcome, Verdict, uncheckable
from generator.verify.ascend.stubs import (
    PRELOADED,
    MindSpore,
    StubError,
    digest,
    find_mindspore,
    stub_libraries,
)

HERE = Path(__file__).resolve().parent
CONTROLS = HERE / "controls"
RUNNER = HERE / "runner.py"

# What each control has to come to, and a word of the reason for a FAIL.
EXPECTED = {
    "passes.py": (Verdict.PASS, ""),
    "refuses_a_type.py": (Verdict.FAIL, "BFloat16"),
    "falls_back.py": (Verdict.FAIL, "Cholesky"),
}
CONTROL_TIMEOUT = 120.0  # seconds; a control takes 2 to 4 on two cores

# Errors that come from made-up values or from the machine, not from Ascend.
ARITHMETIC = {"ZeroDivisionError", "OverflowError", "FloatingPointError"}
MACHINE = {"OSError", "KeyboardInterrupt", "MemoryError"}

NOT_SIMULATED = re.compile(
    "dry run mode can not support dynamic shape"
    "|output shape depends on the actual execution"
    "|Can not found GraphRunner"
)
FALLS_BACK = re.compile(r"SelectKernelInfo\] node is (\S+) should backoff")
SELECTED = re.compile(r"PrintOpSelectedNum\] ([\d ]+)\n")
DEVICE_MEMORY = re.compile(r"AllocDeviceMem\] Malloc Memory for Pool")


@dataclass(frozen=True)
class _Run:
    """One process of a dry run; ``end`` is the runner's report, if it wrote one."""

    end: dict[str, Any] | None
    status: int | None
    log: str
    seconds: float


def dry_run(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    python: str = sys.executable,
    timeout: float = 120,
) -> Outcome:
    """Judge a script by MindSpore's own Ascend front end; nothing is computed.

    The script runs in an empty temporary folder, so that it leaves nothing behind:
    paths among its arguments have to be absolute. Keep the run short by arguments of
    its own where it has them; after half of ``timeout`` every pass over data is cut
    short.

    Args:
        script: the script, run as ``python script.py arguments``.
        arguments: the script's own arguments.
        python: the interpreter whose MindSpore judges.
        timeout: seconds after which the run is ended, with all that it started.

    Returns:
        The outcome; :mod:`generator.verify.ascend` says what a PASS proves. Whatever
        stands in the way of a judgement makes it UNCHECKABLE, with the reason: no
        exception is raised for what a script does or a machine lacks.
    """
    try:
        mindspore = find_mindspore(python)
        stubs = stub_libraries(mindspore)
    except StubError as error:
        return uncheckable(f"{error}.")
    wrong = _wrong_control(mindspore, stubs)
    if wrong is not None:
        return wrong
    return _judge(script, arguments, mindspore, stubs, timeout)


def check_controls(python: str = sys.executable) -> Outcome:
    """Whether the dry run can be trusted: one script must pass and two must fail.

    A good result is kept beside the stand-ins, for the same MindSpore and the same
    sources of ours. :func:`dry_run` asks for it by itself.
    """
    try:
        mindspore = find_mindspore(python)
        stubs = stub_libraries(mindspore)
    except StubError as error:
        return uncheckable(f"{error}.")
    wrong = _wrong_control(mindspore, stubs)
    if wrong is not None:
        return wrong
    reason = f"all {len(EXPECTED)} controls come out right"
    return Outcome(Verdict.PASS, reason, mindspore=mindspore.version)


def _wrong_control(mindspore: MindSpore, stubs: Path) -> Outcome | None:
    """What is wrong with the first control that does not come out as it has to."""
    sources = [*CONTROLS.glob("*.py"), Path(__file__), RUNNER]
    good = stubs / f"controls-{digest(sources, mindspore.python, mindspore.package)}"
    if good.exists():
        return None
    for name, (verdict, word) in EXPECTED.items():
        outcome = _judge(CONTROLS / name, [], mindspore, stubs, CONTROL_TIMEOUT)
        if outcome.verdict is not verdict or word not in outcome.reason:
            reason = (
                f"the dry run cannot be trusted with MindSpore {mindspore.version} "
                f"here: the control {name} has to end with {verdict.value}, and came "
                f"to {outcome}"
            )
            return uncheckable(reason, mindspore.version)
    with contextlib.suppress(OSError):  # then the next run checks them again
        good.touch()
    return None


def _judge(
    script: Path,
    arguments: Sequence[str],
    mindspore: MindSpore,
    stubs: Path,
    timeout: float,
) -> Outcome:
    """Run the script; a second time, with the other answer to each test that it makes.

    A yes that is made up suits a script that asks whether all is finite, a no suits one
    that asks whether something is NaN.
    """
    path = script.absolute()
    if not path.is_file():
        return uncheckable(f"{script} is not a file.", mindspore.version)
    first = None
    for truth in (True, False):
        run = _run(path, arguments, mindspore, stubs, timeout, truth)
        outcome = _classify(run, path, timeout, mindspore.version)
        if outcome.verdict is not Verdict.UNCHECKABLE:
            return outcome
        first = first or outcome
        if run.end is None or run.end["end"] == "finished":
            break
    assert first is not None
    return first


def _run(
    script: Path,
    arguments: Sequence[str],
    mindspore: MindSpore,
    stubs: Path,
    timeout: float,
    truth: bool,
) -> _Run:
    """One process; when it is over, nothing that it started or wrote is left."""
    with tempfile.TemporaryDirectory(
        prefix="msgen-dryrun-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        work, report, log = folder / "work", folder / "report.json", folder / "log"
        work.mkdir()
        options = [str(report), str(truth).lower(), str(timeout / 2)]
        started = time.monotonic()
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [
                    mindspore.python,
                    str(RUNNER),
                    *options,
                    str(script),
                    *map(str, arguments),
                ],
                cwd=work,
                env=_environment(stubs),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status: int | None = process.wait(timeout)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                # The process leads its group: workers that it left behind go too.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        seconds = time.monotonic() - started
        try:
            end = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            end = None
        text = log.read_text(encoding="utf-8", errors="replace")
        return _Run(end, status, text, seconds)


def _environment(stubs: Path) -> dict[str, str]:
    """The environment in which MindSpore finds an Ascend NPU that is none."""
    paths = [str(HERE / "pystub"), os.environ.get("PYTHONPATH", "")]
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MS_", "GLOG_", "ASCEND_"))
    }
    return kept | {
        "LD_LIBRARY_PATH": str(stubs),
        "LD_PRELOAD": str(stubs / PRELOADED),
        "MS_SIMULATION_LEVEL": "1",
        # Without it, the simulation does not take an `if` in a graph.
        "MS_DEV_RUNTIME_CONF": "switch_inline:False",
        "MS_SUBMODULE_LOG_v": "{DEVICE:1}",  # tells which kernel each operator got
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _classify(run: _Run, script: Path, timeout: float, version: str) -> Outcome:
    """What a run comes to."""
    kernels = sum(
        int(count) for line in SELECTED.findall(run.log) for count in line.split()
    )

    def outcome(verdict: Verdict, reason: str) -> Outcome:
        return Outcome(verdict, reason, kernels, version, run.seconds, run.log)

    if "Unsupported device target Ascend" in run.log:
        reason = f"MindSpore {version} does not load its Ascend plugin with stand-ins."
        return outcome(Verdict.UNCHECKABLE, reason)
    if NOT_SIMULATED.search(run.log):
        reason = (
            "shapes that depend on values, or the GE back end (jit level O2), cannot "
            "be dry-run."
        )
        return outcome(Verdict.UNCHECKABLE, reason)
    fallen = {name.rsplit("/", 1)[-1] for name in FALLS_BACK.findall(run.log)}
    if fallen:
        # The graph's name for an operator: its type, then -op and a number.
        types = sorted({re.sub(r"-op\d+$", "", name) for name in fallen})
        reason = f"no Ascend kernel, falls back to the CPU: {', '.join(types)}."
        return outcome(Verdict.FAIL, reason)
    if run.end is None:
        return outcome(Verdict.UNCHECKABLE, _no_report(run, timeout, kernels))
    if run.end["end"] == "raised":
        return outcome(*_judge_error(run.end, script))
    if run.end["end"] == "exited":
        said = _one_line(run.end["message"])
        reason = f"the script ended itself, which says nothing of Ascend: {said}"
        return outcome(Verdict.UNCHECKABLE, reason)
    # Operators that PyNative dispatches to aclnn need no selection, only memory.
    if not kernels and not DEVICE_MEMORY.search(run.log):
        reason = "nothing was run on Ascend: does the script choose it?"
        return outcome(Verdict.UNCHECKABLE, reason)
    reason = (
        f"Ascend dry-run checked (CANN replaced by stubs): {kernels} kernel entries "
        f"selected by MindSpore {version}"
    )
    return outcome(Verdict.PASS, reason)


def _no_report(run: _Run, timeout: float, kernels: int) -> str:
    if run.status is None:
        return (
            f"still running after {timeout:g} seconds, with {kernels} kernel entries "
            "selected by then; give the script arguments that keep its run short."
        )
    if run.status < 0:
        return f"the process died of {signal.Signals(-run.status).name}."
    return f"the process ended with status {run.status} before the script did."


def _judge_error(end: dict[str, Any], script: Path) -> tuple[Verdict, str]:
    """Whether an error is the script's fault on Ascend, or the dry run's."""
    kinds = set(end["kinds"])
    where = f"{script.name}:{end['line']}: " if end["line"] else ""
    said = f"{where}{end['type']}: {_one_line(end['message'])}"
    made_up = kinds & ARITHMETIC or end["message"] == "math domain error"
    missing = "ImportError" in kinds and end["module"].split(".")[0] != "mindspore"
    reading = "/mindspore/dataset/" in end["file"] and not (
        kinds & {"TypeError", "AttributeError", "ImportError"}
    )
    if end["own"]:
        why = "the script raised an error of its own; values are made up in a dry run"
    elif made_up:
        why = "values are made up in a dry run"
    elif kinds & MACHINE or missing:
        why = "the script lacks something here"
    elif reading:
        why = "the data could not be read"
    else:
        return Verdict.FAIL, said
    return Verdict.UNCHECKABLE, f"{why}: {said}"


def _one_line(message: str) -> str:
    """The first paragraph of a message, without MindSpore's notes on its own code."""
    paragraph = message.strip().split("\n\n")[0]
    paragraph = re.split(r"\n-{10,}\n", paragraph)[0]
    text = " ".join(paragraph.split())
    return text if len(text) <= 400 else text[:400].rsplit(" ", 1)[0] + " …"
