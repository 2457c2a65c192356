"""Reading a user's own Python file, by its syntax tree, without running it."""

from __future__ import annotations

import ast
import os
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path, PurePath, PurePosixPath

from generator.spec import SourceRef

# Modules that a script imports itself; a user's file of that name would not be found.
TAKEN_MODULES = frozenset(sys.stdlib_module_names) | {
    "mindspore",
    "numpy",
    "sklearn",
    "tqdm",
}


# A script's docstring shows the paths of its command; these would break it.
PLAIN = 'without control characters, " and \\'


def is_plain(path: str) -> bool:
    """Whether a script's docstring can show the path as it is."""
    return path.isprintable() and not set(path) & set('"\\')


class SourceError(Exception):
    """The file or the name in it cannot be used; the text says why."""


def parse_file(ref: SourceRef) -> ast.Module:
    """The syntax tree of the file.

    Raises:
        SourceError: if it is not there, not readable or not Python.
    """
    path = Path(ref.path)
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise SourceError(f"{ref.path} {what}.")
    try:
        with tokenize.open(path) as file:  # honours a coding line, as Python does
            return ast.parse(file.read())
    except SyntaxError as error:  # a bad coding line and wrong UTF-8 come as this too
        where = f", line {error.lineno}" if error.lineno else ""
        raise SourceError(f"{ref.path}{where}: {error.msg}.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"{ref.path}: {reason}.") from error


def find_class(tree: ast.Module, ref: SourceRef) -> ast.ClassDef:
    """The class that ``ref`` names.

    Raises:
        SourceError: if the file defines none of that name.
    """
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in classes:
        if node.name == ref.name:
            return node
    raise SourceError(_missing("class", ref, [node.name for node in classes]))


def find_function(tree: ast.Module, ref: SourceRef) -> ast.FunctionDef:
    """The function that ``ref`` names.

    Raises:
        SourceError: if the file defines none of that name.
    """
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in functions:
        if node.name == ref.name:
            return node
    raise SourceError(_missing("function", ref, [node.name for node in functions]))


def candidates(
    tree: ast.Module, kind: type[ast.ClassDef | ast.FunctionDef]
) -> list[str]:
    """Names of that kind that the file defines at its top level."""
    return [node.name for node in tree.body if isinstance(node, kind)]


def _missing(kind: str, ref: SourceRef, there: list[str]) -> str:
    names = f"it has {', '.join(there)}" if there else "it has none"
    return f"{ref.path} defines no {kind} {ref.name!r} at its top level ({names})."


def find_method(
    tree: ast.Module, cls: ast.ClassDef, name: str
) -> ast.FunctionDef | None:
    """A method of a class or of its base classes in the same file, if it has one."""
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    bases = {base.id for base in cls.bases if isinstance(base, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in bases - {cls.name}:
            found = find_method(tree, node, name)
            if found is not None:
                return found
    return None


def names_used(tree: ast.Module) -> set[str]:
    """Every name and attribute that a file mentions."""
    nodes = list(ast.walk(tree))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return names | {node.id for node in nodes if isinstance(node, ast.Name)}


def required_arguments(function: ast.FunctionDef, skip_first: bool) -> list[str]:
    """Names of the arguments that a call has to give."""
    given = function.args.posonlyargs + function.args.args
    names = [arg.arg for arg in given[: len(given) - len(function.args.defaults)]]
    keyword_only = [
        arg.arg
        for arg, default in zip(
            function.args.kwonlyargs, function.args.kw_defaults, strict=True
        )
        if default is None
    ]
    return names[1 if skip_first else 0 :] + keyword_only


def accepts_args_and_train(function: ast.FunctionDef) -> bool:
    """Whether ``function(args, train=True)`` is a call that it takes."""
    arguments = function.args
    positional = [arg.arg for arg in arguments.posonlyargs + arguments.args]
    named = {arg.arg for arg in arguments.args[1:] + arguments.kwonlyargs}
    takes_first = bool(positional) or arguments.vararg is not None
    takes_train = "train" in named or arguments.kwarg is not None
    others = set(required_arguments(function, skip_first=bool(positional))) - {"train"}
    return takes_first and takes_train and not others


def nodes_of(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """All nodes of a function's body."""
    for statement in function.body:
        yield from ast.walk(statement)


def module_name(ref: SourceRef) -> str | None:
    """The module that a script imports, or None if no import can reach the file.

    ``ref.path`` is relative to the script's folder, which is the first place where
    Python looks when it runs the script.
    """
    path = PurePosixPath(ref.path)
    if path.is_absolute() or path.suffix != ".py":
        return None
    parts = path.with_suffix("").parts
    reachable = all(part.isidentifier() for part in parts) and bool(parts)
    return ".".join(parts) if reachable else None


def beside(ref: SourceRef, script: str) -> SourceRef:
    """The same file as seen from the script's folder, with forward slashes."""
    folder = os.path.dirname(script) or "."
    try:
        path = os.path.relpath(ref.path, folder)
    except ValueError:  # another drive on Windows
        path = os.path.abspath(ref.path)
    return SourceRef(PurePath(path).as_posix(), ref.name)


def same_file(first: str, second: str) -> bool:
    """Whether two paths lead to one place, links followed."""
    return os.path.realpath(first) == os.path.realpath(second)
