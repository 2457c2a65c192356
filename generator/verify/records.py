"""The metrics that a run left in its output directory."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from generator.verify.result import NotJudged


class Recorded:
    """A run, by its ``output`` directory; the file is read once."""

    output: Path

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl; none if there is no such file.

        Raises:
            NotJudged: if they are not JSON.
        """
        path = self.output / "metrics.jsonl"
        if not path.is_file():
            return []
        text = path.read_text(encoding="utf-8")
        try:
            return [json.loads(line) for line in text.splitlines()]
        except ValueError as error:
            raise NotJudged("a line of metrics.jsonl is not JSON") from error

    @property
    def windows(self) -> list[dict[str, Any]]:
        """The lines that record a window."""
        return [record for record in self.records if "window" in record]

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """The lines that record an evaluation."""
        return [record for record in self.records if "eval_loss" in record]
