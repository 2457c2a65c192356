"""What MindSpore takes and a script still cannot mean, on Ascend."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from generator.verify.ascend.findings import Finding
from generator.verify.ascend.uses import Reading, Use
from generator.verify.ascend.values import Instance, Ms, Target, Value

TESTS = {"isfinite", "isinf", "isnan", "is_finite", "float_status"}
STEP_METHODS = {
    "on_train_step_begin",
    "on_train_step_end",
    "step_begin",
    "step_end",
}
STEP_CALLBACKS = {"mindspore.train.LossMonitor", "mindspore.train.callback.LossMonitor"}
MODEL_TRAIN = "mindspore.train.model.Model."
Facts = Mapping[Target, Mapping[str, Any]]


def find_traps(reading: Reading, facts: Facts) -> Iterator[Finding]:
    """All of them; ``facts`` are those of the targets of ``reading``."""
    names = {
        _last_name(node) for tree in reading.trees.values() for node in ast.walk(tree)
    }
    if "all_finite" not in names:
        for file, tree in reading.trees.items():
            yield from own_overflow_tests(tree, file)
    for use in reading.uses:
        yield from sink_mode(use, reading, facts)


def own_overflow_tests(tree: ast.Module, file: str = "") -> Iterator[Finding]:
    """Gradients tested by isfinite and the like.

    In saturation mode, Ascend writes the largest number where others write inf: what
    has overflowed looks finite. ``amp.all_finite`` reads the device's overflow flag.
    """
    gradients = _gradients(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _last_name(node.func) not in TESTS:
            continue
        parts: list[ast.expr] = list(node.args)
        if isinstance(node.func, ast.Attribute):
            parts.append(node.func.value)
        if any(_mentions(part, gradients) for part in parts):
            yield Finding(
                file,
                node.lineno,
                "fail",
                ast.unparse(node.func),
                "a test of gradients written by hand sees no overflow where Ascend "
                "saturates",
                "use amp.all_finite",
            )


def _gradients(tree: ast.Module) -> set[str]:
    """Names that stand for gradients: called so, or taken out of such."""
    found = {
        name
        for node in ast.walk(tree)
        if isinstance(name := _identifier(node), str) and "grad" in name.lower()
    }
    while True:
        before = len(found)
        for node in ast.walk(tree):
            if isinstance(node, ast.For | ast.comprehension):
                source, targets = node.iter, [node.target]
            elif isinstance(node, ast.Assign):
                source, targets = node.value, node.targets
            else:
                continue
            if _identifier(_held(source)) in found:
                for target in targets:
                    found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        if len(found) == before:
            return found


def _held(node: ast.expr) -> ast.expr:
    """What an expression goes through or takes an item of."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and len(node.args) == 1:
            if _last_name(node.func) not in ("list", "tuple", "iter", "reversed"):
                return node
            node = node.args[0]
        else:
            return node


def _identifier(node: ast.AST) -> str | None:
    for kind, field in ((ast.Name, "id"), (ast.arg, "arg"), (ast.Attribute, "attr")):
        if isinstance(node, kind):
            return str(getattr(node, field))
    return None


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(_identifier(part) in names for part in ast.walk(node))


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.alias):
        return node.name.rpartition(".")[2]
    return _identifier(node) if isinstance(node, ast.Name | ast.Attribute) else None


def sink_mode(use: Use, reading: Reading, facts: Facts) -> Iterator[Finding]:
    """Callbacks of every step, in a mode that hands over whole epochs."""
    fact = _fact_of_model_train(use, facts)
    if fact is None or use.call is None:
        return
    names = [name for name, *_ in fact["parameters"] or ()]
    if not {"callbacks", "dataset_sink_mode", "sink_size"} <= set(names):
        return
    defaults = {name: value for name, _, _, value in fact["parameters"]}
    mode = _argument(use.call, names, "dataset_sink_mode")
    size = _argument(use.call, names, "sink_size")
    callbacks = _argument(use.call, names, "callbacks")
    if isinstance(size, ast.Constant) and size.value == 1:
        return  # then a transfer is a step
    if callbacks is None or not _of_every_step(callbacks, reading):
        return
    sinks = defaults["dataset_sink_mode"]
    if mode is not None:
        sinks = mode.value if isinstance(mode, ast.Constant) else None
    if sinks is None:
        problem = "whether it is on cannot be told; with it, callbacks see no steps"
        yield Finding(use.file, use.line, "unknown", "dataset_sink_mode", problem)
    elif sinks:
        how = "on" if mode is not None else "on unless it is turned off"
        yield Finding(
            use.file,
            use.line,
            "fail",
            "dataset_sink_mode",
            f"it is {how}, and hands whole epochs to the device: callbacks of every "
            "step are called once an epoch",
            "give dataset_sink_mode=False",
        )


def _fact_of_model_train(use: Use, facts: Facts) -> Mapping[str, Any] | None:
    for target in use.targets:
        fact = facts[target]
        if fact["status"] == "found" and fact["name"] in (
            MODEL_TRAIN + "train",
            MODEL_TRAIN + "fit",
        ):
            return fact
    return None


def _argument(call: ast.Call, names: list[str], name: str) -> ast.expr | None:
    for word in call.keywords:
        if word.arg == name:
            return word.value
    index = names.index(name)
    return call.args[index] if index < len(call.args) else None


def _of_every_step(callbacks: ast.expr, reading: Reading) -> bool:
    """Whether one of the callbacks wants to see each step, as far as can be seen."""
    items = [callbacks]
    if isinstance(callbacks, ast.List | ast.Tuple):
        items = callbacks.elts
    return any(_wants_steps(reading.values.get(item, frozenset())) for item in items)


def _wants_steps(value: Value) -> bool:
    for atom in value:
        if isinstance(atom, Instance):
            methods = {
                item.name
                for item in atom.node.body
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
            }
            if methods & STEP_METHODS:
                return True
        elif isinstance(atom, Ms) and atom.target[0] == "result":
            inner = atom.target[1]
            if isinstance(inner, tuple) and inner[1] in STEP_CALLBACKS:
                return True
    return False
