"""What a value in a script may be, as far as its syntax tree tells.

A value is the set of its alternatives, *atoms*: it is one thing after one branch of the
script, and another after the next.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Union

# Where something of MindSpore comes from, in a form that JSON takes:
# ("name", "mindspore.nn.Adam"), ("result", target) of a call, ("attr", target, name).
Target = tuple[Union[str, "Target"], ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

MAX_DEPTH, MAX_ALTERNATIVES = 8, 8


@dataclass(frozen=True)
class Ms:
    """Something of MindSpore."""

    target: Target


@dataclass(frozen=True)
class Own:
    """A function or class that the script defines; a method has its class too."""

    node: Function | ast.ClassDef
    cls: ast.ClassDef | None = None


@dataclass(frozen=True)
class Instance:
    """An object of a class that the script defines."""

    node: ast.ClassDef


@dataclass(frozen=True)
class Other:
    """Nothing of MindSpore; what a call of it returns is in ``gives``.

    Either nothing of MindSpore too, or perhaps what it was given, or anything.
    """

    gives: str = "nothing"


@dataclass(frozen=True)
class Unknown:
    """It may be anything."""


@dataclass(frozen=True)
class Container:
    """A list, tuple, set or dict of what is not only Other."""

    items: Value


@dataclass(frozen=True)
class Taking:
    """A method of a container."""

    items: Value
    name: str


@dataclass(frozen=True)
class Module:
    """A file beside the script, that it imports."""

    path: Path


Atom = Ms | Own | Instance | Other | Unknown | Container | Taking | Module
Value = frozenset["Atom"]
OTHER: Value = frozenset([Other()])
CARRIER: Value = frozenset([Other("arguments")])
UNKNOWN: Value = frozenset([Unknown()])
CONTAINER: Value = frozenset([Container(UNKNOWN)])


def bounded(value: Value) -> Value:
    """A value that stays small: loops would let it grow without end."""
    kept = {Unknown() if depth(atom) > MAX_DEPTH else atom for atom in value}
    return UNKNOWN if len(kept) > MAX_ALTERNATIVES else frozenset(kept)


def depth(atom: Atom) -> int:
    """How many containers, calls and attributes deep it is."""
    if isinstance(atom, Container):
        return 2 + max(map(depth, atom.items), default=0)
    if not isinstance(atom, Ms):
        return 1
    levels, target = 1, atom.target
    while isinstance(target[1], tuple):
        levels, target = levels + 1, target[1]
    return levels


def plain(value: Value) -> bool:
    """Whether it is nothing of MindSpore's, whatever happens."""
    return all(isinstance(atom, Other) for atom in value)


def container(parts: list[Value]) -> Value:
    """A list or the like of these; one that is empty may be filled later."""
    items = frozenset().union(*parts)
    return OTHER if parts and plain(items) else frozenset([Container(items)])


def yields(target: Target, methods: set[str]) -> bool:
    """Whether it is one of these attributes, or what one of these methods returned."""
    inner = target[1] if target[0] == "result" else target
    return isinstance(inner, tuple) and inner[0] == "attr" and inner[2] in methods
