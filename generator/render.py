"""The only Jinja environment: a plan goes in, text comes out."""

from __future__ import annotations

import functools
from dataclasses import fields
from pathlib import Path

import jinja2

from generator.plan import ScriptPlan


def templates_dir() -> Path:
    """Where the templates are: inside an installed package, beside a checkout's."""
    package = Path(__file__).resolve().parent
    installed = package / "templates"
    return installed if installed.is_dir() else package.parent / "templates"


@functools.lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates_dir()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Python source, not HTML
    )


def render(plan: ScriptPlan) -> str:
    """The script as text, before Black."""
    values = {field.name: getattr(plan, field.name) for field in fields(plan)}
    return _environment().get_template("script.py.jinja").render(values)
