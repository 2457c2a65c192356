"""Holding a script's MindSpore calls against what the installed MindSpore says."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generator import source
from generator.spec import SourceRef
from generator.verify.ascend.findings import Finding
from generator.verify.ascend.interpreter import located
from generator.verify.ascend.reviewed import SUCCESSORS, runs_everywhere
from generator.verify.ascend.traps import Facts, find_traps
from generator.verify.ascend.uses import Use, read
from generator.verify.ascend.values import Target

LOOKUP = Path(__file__).resolve().parent / "lookup.py"
LOOKUP_TIMEOUT = 120.0  # seconds; it takes 2 to 4
WORST_LAST = ("fine", "warn", "unknown", "fail")


def check_calls(
    script: Path, device: str, *, python: str = sys.executable
) -> list[Finding]:
    """What is wrong with a script's use of MindSpore on ``device``, by its text.

    Each name and call is looked up in the MindSpore of ``python``: whether it is there,
    runs on the device, is deprecated, and takes the arguments that it is given. What
    cannot be told is a finding too, of kind ``unknown``; nothing is passed silently.

    Args:
        script: the script; it is not run.
        device: ``"Ascend"`` or ``"CPU"``, as in "Supported Platforms".
        python: the interpreter whose MindSpore is asked.

    Returns:
        The findings in the order of the script's lines. A file that is not there or is
        not Python is one finding, and so is an interpreter without MindSpore.
    """
    try:
        tree = source.parse_file(SourceRef(str(script), ""))
        reading = read(tree, script.resolve().parent)
    except source.SourceError as error:
        return [Finding("", 0, "fail", script.name, str(error))]
    except (RecursionError, MemoryError):  # Python's parser ends with the second
        return [
            Finding("", 0, "unknown", script.name, "it is nested too deep to be read")
        ]
    targets = sorted({t for use in reading.uses for t in use.targets}, key=repr)
    try:
        answer = _look_up(targets, python)
    except LookupFailed as error:
        return [Finding("", 0, "unknown", script.name, f"{error}; no call was judged")]
    facts: Facts = {target: answer["facts"][json.dumps(target)] for target in targets}
    found = [
        finding
        for use in reading.uses
        for finding in _judge(use, facts, device, answer)
    ]
    if device == "Ascend":
        found += find_traps(reading, facts)
    # A name that is wrong is wrong once a line, called and mentioned.
    return sorted(set(found))


class LookupFailed(Exception):
    """MindSpore could not be asked; the text says why."""


def _look_up(targets: list[Target], python: str) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [located(python), str(LOOKUP)],
            input=json.dumps(targets),
            cwd=tempfile.gettempdir(),
            capture_output=True,
            text=True,
            timeout=LOOKUP_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LookupFailed(f"{python} could not be asked ({error})") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise LookupFailed(f"{python} cannot import MindSpore ({said[-1]})")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _judge(
    use: Use, facts: Facts, device: str, answer: Mapping[str, Any]
) -> Iterator[Finding]:
    """The finding of one use, if it has one: the best of what it may be."""
    if not use.targets:
        called = use.call.func if use.call else None
        if isinstance(called, ast.Attribute) and called.attr not in answer["methods"]:
            return  # no object of MindSpore has such a method
        problem = "not judged: what it is called on is not known"
        yield Finding(use.file, use.line, "unknown", use.text, problem)
        return
    verdicts = [
        _verdict(use, target, facts[target], device, answer["version"])
        for target in use.targets
    ]
    kind, problem, instead = min(verdicts, key=lambda v: WORST_LAST.index(v[0]))
    if kind != "fine":
        yield Finding(use.file, use.line, kind, use.text, problem, instead)  # type: ignore[arg-type]


Verdict = tuple[str, str, str]
FINE: Verdict = ("fine", "", "")


def _verdict(
    use: Use, target: Target, fact: Mapping[str, Any], device: str, version: str
) -> Verdict:
    """Kind of finding, problem, and what to use."""
    if fact["status"] == "missing":
        instead = SUCCESSORS.get(str(target[1]), "") or next(iter(fact["near"]), "")
        problem = f"MindSpore {version} has no such name: {fact['why']}"
        return "fail", problem, f"use {instead}" if instead else ""
    if fact["status"] == "unclear":
        if use.call is None:
            return FINE
        return "unknown", f"not judged: {fact['why']} is not known", ""
    platforms = fact["platforms"]
    if platforms is not None and device not in platforms:
        where = " and ".join(platforms) or "none"
        return "fail", f"it runs on {where}, not on {device}", ""
    if use.call is not None:
        wrong = _arguments(use.call, fact)
        if wrong is not None:
            return wrong
        if platforms is None and not runs_everywhere(fact["name"]):
            return "unknown", "not judged: MindSpore does not say where it runs", ""
    if fact["deprecated"] and target[0] != "result":  # said where it was made
        return "warn", f"deprecated in MindSpore {version}: {fact['deprecated']}", ""
    return FINE


def _arguments(call: ast.Call, fact: Mapping[str, Any]) -> Verdict | None:
    """What is wrong with the arguments of a call, or cannot be told of them."""
    words = [word.arg for word in call.keywords if word.arg is not None]
    parameters = fact["parameters"]
    if not fact["calls"]:
        return "fail", "it is no function or class, and cannot be called", ""
    if parameters is None:
        unknown = [word for word in words if not _tells_of(word, fact["document"])]
        if unknown:
            return "unknown", f"not judged: whether it takes {unknown[0]}", ""
        return None
    kinds = {kind for _, kind, *_ in parameters}
    named = {n for n, kind, *_ in parameters if kind not in ("POSITIONAL_ONLY",)}
    for word in words:
        if word in named and word not in ("args", "kwargs"):
            continue
        if "VAR_KEYWORD" in kinds and _tells_of(word, fact["document"]):
            continue
        there = [n for n, kind, *_ in parameters if not kind.startswith("VAR_")]
        return "fail", f"it takes no keyword {word}", f"it has {', '.join(there)}"
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if starred or len(words) < len(call.keywords):
        return None
    in_order = [n for n, kind, *_ in parameters if kind.startswith("POSITIONAL")]
    count = len(call.args)
    if count > len(in_order) and "VAR_POSITIONAL" not in kinds:
        problem = f"it takes at most {len(in_order)} arguments in order, not {count}"
        return "fail", problem, ""
    given = {*in_order[:count], *words}
    missing = [
        name
        for name, kind, optional, _ in parameters
        if not optional and not kind.startswith("VAR_") and name not in given
    ]
    if missing:
        return "fail", f"it needs {', '.join(missing)}", ""
    return None


def _tells_of(word: str, document: str) -> bool:
    """Whether a docstring lists an argument: ``word (int): …`` or ``f(word=None)``."""
    name = re.escape(word)
    listed = rf"^[ \t*`-]*{name}[*`]* ?\(|^\.\. \w+::.*[(,] ?{name}\b"
    return re.search(listed, document, re.MULTILINE) is not None
