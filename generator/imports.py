"""Imports as data: merged, sorted and rendered once, in the order that isort keeps."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Import:
    """``import module [as alias]``, or ``from module import name [as alias]``."""

    module: str
    name: str | None = None
    alias: str | None = None
    own: bool = False  # of the user's own code, beside the script

    @property
    def bound(self) -> str:
        """The imported thing as an import statement lists it."""
        what = self.name or self.module
        return f"{what} as {self.alias}" if self.alias not in (None, what) else what


def sections(imports: Iterable[Import]) -> tuple[str, str]:
    """The text of the standard library's imports, and of the others'."""
    standard, third, own = [], [], []
    for entry in set(imports):
        if entry.own:
            own.append(entry)
        elif entry.module.split(".")[0] in sys.stdlib_module_names:
            standard.append(entry)
        else:
            third.append(entry)
    others = [_section(part) for part in (third, own) if part]
    return _section(standard), "\n\n".join(others)


def _section(imports: list[Import]) -> str:
    plain = sorted(f"import {entry.bound}" for entry in imports if not entry.name)
    names = defaultdict(list)
    for entry in imports:
        if entry.name:
            names[entry.module].append(entry.bound)
    # Constants first, then classes, then the rest: isort's order of one line's names.
    from_lines = [
        f"from {module} import {', '.join(sorted(bound, key=_member_order))}"
        for module, bound in sorted(names.items())
    ]
    return "\n".join(plain + from_lines)


def _member_order(bound: str) -> tuple[int, str]:
    name = bound.split(" ")[0]
    rank = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return rank, name
