"""The results as a table for people and as data for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from generator.verify.contract import Property
from generator.verify.result import Result

WIDTH = 88


def table(results: Mapping[Property, Result]) -> str:
    """A line per property; why one did not pass stands below its line."""
    rows = [
        (
            f"{property_.number:2}",
            property_.name,
            result.verdict,
            result.measured,
            result.bound,
        )
        for property_, result in results.items()
    ]
    heads = ("", "property", "verdict", "measured", "bound")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [_line(heads, widths)]
    for row, result in zip(rows, results.values(), strict=True):
        lines.append(_line(row, widths))
        indent = " " * (widths[0] + 2)
        lines += textwrap.wrap(
            result.reason, WIDTH, initial_indent=indent, subsequent_indent=indent
        )
    return "\n".join(lines)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)]
    return "  ".join(cells).rstrip()


def passed(results: Mapping[Property, Result]) -> bool:
    """Whether all properties hold that apply."""
    return all(r.verdict in ("pass", "not applicable") for r in results.values())


def summary(results: Mapping[Property, Result]) -> str:
    """How many of each verdict there are, in a line."""
    verdicts = [result.verdict for result in results.values()]
    counts = {
        verdict: verdicts.count(verdict)
        for verdict in ("pass", "fail", "not judged", "not applicable")
    }
    said = {"pass": "passed", "fail": "failed"}
    return ", ".join(f"{n} {said.get(v, v)}" for v, n in counts.items() if n)


def as_data(results: Mapping[Property, Result]) -> list[dict[str, Any]]:
    """The results as JSON has them."""
    return [
        {
            "number": property_.number,
            "name": property_.name,
            "title": property_.title,
            "verdict": result.verdict,
            "measured": result.measured,
            "bound": result.bound,
            "reason": result.reason,
        }
        for property_, result in results.items()
    ]
