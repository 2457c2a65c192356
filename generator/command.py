"""The command that makes a given script: in its docstring and in suggestions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import PurePath

from generator.catalog.options import OPTIONS, format_value
from generator.spec import TrainingSpec


def command_parts(spec: TrainingSpec) -> list[str]:
    """The words of the command, an option with its value per part.

    The style is always named, of the others only what differs from the default.
    """
    parts = ["msgen"]
    for option in OPTIONS:
        value = getattr(spec, option.field)
        if option.field == "style" or value != option.default:
            parts.append(f"{option.flag} {shlex.quote(format_value(value))}")
    if spec.script != "train.py":
        parts.append(f"-o {shlex.quote(PurePath(spec.script).as_posix())}")
    return parts


def command(spec: TrainingSpec, extra: Iterable[str] = ()) -> str:
    """The command on one line, followed by the ``extra`` words."""
    return " ".join([*command_parts(spec), *extra])


def wrap(parts: list[str], width: int) -> list[str]:
    """The command over lines of at most ``width`` columns, joined by backslashes."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + len("  \\") > width:
            lines[-1] += " \\"
            lines.append(f"    {part}")
        else:
            lines[-1] += f" {part}"
    return lines
