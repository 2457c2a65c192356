"""What every entry of the catalogue has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One choice of one option.

    Attributes:
        key: what a user types.
        title: its name in running text.
        summary: one line that helps to choose.
    """

    key: str
    title: str
    summary: str


E = TypeVar("E", bound=Entry)


def by_key(entries: Sequence[E]) -> Mapping[str, E]:
    """The entries under their keys, in the order given."""
    return {entry.key: entry for entry in entries}
