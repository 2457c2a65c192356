"""From a request to the text of its script: the one way that everything takes."""

from __future__ import annotations

from generator import rules
from generator.formatting import format_source
from generator.plan import plan
from generator.render import render
from generator.spec import TrainingSpec


def generate(spec: TrainingSpec) -> str:
    """Return the script that ``spec`` describes.

    Raises:
        generator.errors.Refused: if something is wrong with the request.
    """
    problems = rules.check(spec)
    if problems:
        raise rules.refuse(problems, spec)
    return format_source(render(plan(spec)))
