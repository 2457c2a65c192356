"""What can be refused without running a script, or MindSpore."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from generator import source
from generator.errors import MsgenError
from generator.spec import SourceRef

NEEDED = ("main", "Network", "create_dataset")


class CannotVerify(MsgenError):
    """There is no script to verify, or nothing to run it with."""


def look_at(script: str) -> None:
    """Refuse what is no script of ours, without running it.

    Raises:
        CannotVerify: with what is wrong.
    """
    if importlib.util.find_spec("mindspore") is None:
        raise CannotVerify(
            "MindSpore is not installed here, and a script is verified by running it: "
            "pip install 'mindspore-msgen[mindspore]'"
        )
    if not script.endswith(".py") and Path(script).is_file():
        raise CannotVerify(f"{script} is no Python file: its name ends in no .py")
    try:
        tree = source.parse_file(SourceRef(script, "main"))
    except source.SourceError as error:
        raise CannotVerify(str(error).rstrip(".")) from error
    missing = [name for name in NEEDED if name not in defined(tree)]
    if missing:
        raise CannotVerify(
            f"{script} is no script of msgen's: it defines no {', '.join(missing)}"
        )


def defined(tree: ast.Module) -> set[str]:
    """The names that a module defines or imports at its top level."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {
                target.id for target in node.targets if isinstance(target, ast.Name)
            }
    return names
