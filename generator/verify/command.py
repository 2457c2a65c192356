"""The command ``msgen verify``: options, progress, and the answer."""

from __future__ import annotations

import difflib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from generator.errors import MsgenError
from generator.spec import TrainingSpec
from generator.verify import report
from generator.verify.ascend.host import has_npu
from generator.verify.ascend.judgement import judge, judge_calls
from generator.verify.contract import BY_NAME, PROPERTIES, Property
from generator.verify.looking import look_at
from generator.verify.result import Result

# All that can be checked without an NPU passes, and nothing was executed on one.
NOT_EXECUTED_STATUS = 3


def list_properties() -> None:
    """Show the names of the properties."""
    width = max(len(property_.name) for property_ in PROPERTIES)
    for property_ in PROPERTIES:
        name = f"{property_.name:{width}}"
        click.echo(f"{property_.number:2}  {name}  {property_.title}")


def check_names(names: Sequence[str]) -> None:
    """Refuse names of properties that there are not.

    Raises:
        click.BadParameter: with the nearest name.
    """
    for name in names:
        if name not in BY_NAME:
            near = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.3)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.BadParameter(
                f"{name!r} is no property of the contract.{hint} "
                "msgen verify --list shows them all.",
                param_hint="'--only'",
            )


def verify_spec(
    spec: TrainingSpec, names: Sequence[str], device: str | None, as_json: bool
) -> int:
    """Verify the script that ``spec`` describes; it is not kept.

    Returns and raises what :func:`verify_script` does.
    """
    from generator.generate import generate

    with tempfile.TemporaryDirectory(prefix="msgen-verify-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(generate(spec), encoding="utf-8")
        return verify_script(str(script), names, device, as_json)


def verify_script(
    script: str, names: Sequence[str], device: str | None, as_json: bool
) -> int:
    """Verify a script and print what was found.

    Returns:
        the exit status: 0 if all properties hold that apply, and for Ascend its calls
        pass too; 1 if not. For Ascend, on a machine without an NPU, where nothing of
        the script is executed: 3 if its calls and its dry run pass, else 1.

    Raises:
        MsgenError: if it cannot be run at all.
    """
    look_at(script)
    if device == "Ascend" and not has_npu():
        return _judge_without_npu(script, names, as_json)
    calls = judge_calls(Path(script)) if device == "Ascend" and not names else None
    results = _run_checks(script, names, device)
    good = report.passed(results) and (calls is None or calls.passed)
    if as_json:
        properties = report.as_data(results)
        answer: object = properties
        if calls is not None:
            answer = {
                "executed_on_npu": True,
                "passed": good,
                "calls": calls.data(),
                "properties": properties,
            }
        click.echo(json.dumps(answer, indent=2))
    else:
        if calls is not None:
            click.echo(calls.text())
        click.echo(report.table(results))
        click.echo(report.summary(results))
    return 0 if good else 1


def _run_checks(
    script: str, names: Sequence[str], device: str | None
) -> dict[Property, Result]:
    # NumPy comes in here, which is there where MindSpore is.
    from generator.verify.session import verify

    progress = Progress(len(names) or len(PROPERTIES))
    try:
        return verify(script, names, device, progress.show)
    except KeyboardInterrupt:
        raise MsgenError("stopped before all was verified") from None
    finally:
        progress.end()


def _judge_without_npu(script: str, names: Sequence[str], as_json: bool) -> int:
    if names:
        raise MsgenError(
            "--only names what is verified by executing a script, and there is no NPU "
            "here; without --only, its calls and its dry run are checked"
        )
    click.echo("looking up calls, compiling with stubs for CANN", err=True)
    found = judge(Path(script))
    click.echo(json.dumps(found.data(), indent=2) if as_json else found.text())
    return NOT_EXECUTED_STATUS if found.passed else 1


class Progress:
    """How far it is, on standard error: one line in a terminal, else a line each."""

    def __init__(self, total: int):
        self.total = total
        self.done = 0
        self.terminal = sys.stderr.isatty()
        if self.terminal:
            click.echo("starting MindSpore", err=True, nl=False)

    def show(self, property_: Property, result: Result) -> None:
        """Note a result."""
        self.done += 1
        text = f"{self.done}/{self.total} {property_.name}: {result.verdict}"
        if self.terminal:
            click.echo(f"\r\x1b[K{text}", err=True, nl=False)
        else:
            click.echo(text, err=True)

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self.terminal:
            click.echo("\r\x1b[K", err=True, nl=False)
