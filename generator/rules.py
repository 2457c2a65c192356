"""What cannot go together, why, and the nearest options that do.

Every rule looks at the whole request and yields what it finds; :func:`check` collects
the findings of all of them. A rule's fix changes as little as it can.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from generator import source
from generator.catalog import MODELS
from generator.catalog.options import OPTIONS, Option, format_value
from generator.command import command
from generator.errors import Problem, Refused
from generator.spec import SourceRef, TrainingSpec

Rule = Callable[[TrainingSpec], Iterator[Problem]]
Node = TypeVar("Node", ast.ClassDef, ast.FunctionDef)


def check(spec: TrainingSpec) -> list[Problem]:
    """Everything that is wrong with ``spec``; empty if nothing is."""
    return [problem for rule in _RULES for problem in rule(spec)]


def refuse(
    problems: Iterable[Problem], spec: TrainingSpec, extra: Iterable[str] = ()
) -> Refused:
    """The refusal with the nearest command that works, found by applying the fixes.

    ``extra`` are words of the command that no rule is about, like ``--dry-run``.
    """
    problems, extra = list(problems), list(extra)
    fields = {option.field for option in OPTIONS} | {"script"}
    pending = problems
    for _ in range(5):  # a fix may bring up the next problem; five rounds are plenty
        changes: dict[str, Any] = {}
        for problem in pending:
            changes |= problem.fix
        spec = replace(spec, **{k: v for k, v in changes.items() if k in fields})
        if changes.get("force"):
            extra.append("--force")
        pending = check(spec)
        if not pending:
            break
    # A problem without a fix (a broken file of the user's) leaves nothing to suggest.
    solved = not pending and all(problem.fix for problem in problems)
    return Refused(problems, command(spec, extra) if solved else None)


def _flag(option: Option, value: object) -> str:
    return f"{option.flag} {format_value(value)}"


def _choices(spec: TrainingSpec) -> Iterator[Problem]:
    for option in OPTIONS:
        value = getattr(spec, option.field)
        if option.choices is None or value is None or isinstance(value, SourceRef):
            continue
        if value not in option.choices:
            near = nearest(str(value), option)
            yield Problem(
                _flag(option, value),
                f"There is no such choice; there is {option.values_text}.",
                {option.field: near or option.default},
            )


def nearest(text: str, option: Option) -> str | None:
    """The choice of ``option`` that looks most like ``text``, if any looks like it."""
    known = {key.lower(): key for key in option.choices or {}}
    found = difflib.get_close_matches(text.lower(), known, n=1, cutoff=0.5)
    return known[found[0]] if found else None


# What each number may be: a test, the range in words, and the nearest good value;
# None stands for "leave the option out".
_RANGES: dict[str, tuple[Callable[[float], bool], str, float | None]] = {
    "accum": (lambda v: v >= 1, "A window needs at least 1 micro-batch", 1),
    "batch_size": (lambda v: v >= 1, "A micro-batch needs at least 1 item", 32),
    "epochs": (lambda v: v >= 1, "A run needs at least 1 epoch", 1),
    "warmup": (lambda v: v >= 0, "It counts updates, so it is 0 or more", 0),
    "seed": (
        lambda v: 0 <= v < 2**32,
        "MindSpore takes seeds from 0 to 4294967295",
        1,
    ),
    "lr": (lambda v: 0 < v < math.inf, "It must be a finite number above 0", None),
    "weight_decay": (
        lambda v: 0 <= v < math.inf,
        "It must be a finite number, 0 or more",
        None,
    ),
    "clip_norm": (
        lambda v: 0 < v < math.inf,
        "It must be a finite number above 0; without the option nothing is clipped",
        None,
    ),
    "loss_scale_value": (
        lambda v: 1 <= v <= 2.0**100,
        "A loss scale is at least 1, and float32 gradients overflow above 2**100",
        None,
    ),
    "loss_scale_factor": (
        lambda v: 2 <= v <= 2**16,
        "The scale is multiplied and divided by it: from 2 to 65536",
        None,
    ),
    "loss_scale_window": (
        lambda v: 1 <= v < 2**31,
        "It counts windows, so it is 1 or more",
        None,
    ),
}


def _numbers(spec: TrainingSpec) -> Iterator[Problem]:
    for option in OPTIONS:
        value = getattr(spec, option.field)
        if option.field not in _RANGES or value is None:
            continue
        is_good, reason, near = _RANGES[option.field]
        if not is_good(value):  # NaN fails every comparison, and so every test
            yield Problem(_flag(option, value), f"{reason}.", {option.field: near})


def _bfloat16(spec: TrainingSpec) -> Iterator[Problem]:
    if spec.amp_dtype != "bfloat16":
        return
    if spec.amp == "O0":
        yield Problem(
            "--amp-dtype bfloat16 --amp O0",
            "At O0 everything stays in float32, so there is nothing in bfloat16.",
            {"amp": "O2"},
        )
    if spec.device == "CPU":
        yield Problem(
            "--amp-dtype bfloat16 --device CPU",
            "MindSpore's CPU kernels have no bfloat16; it needs an Ascend NPU.",
            {"amp_dtype": "float16"},
        )
    if spec.amp == "O3" and has_batch_norm(spec):
        yield Problem(
            f"--amp-dtype bfloat16 --amp O3 --model {spec.model}",
            "Ascend's BatchNorm takes no bfloat16, and O3 converts it too; O2 keeps it "
            "in float32.",
            {"amp": "O2"},
        )
    layers = sorted(_names_in_own_network(spec) & _NO_BFLOAT16.get(spec.amp, set()))
    if layers:
        yield Problem(
            f"--amp-dtype bfloat16 --amp {spec.amp} --model {spec.model}",
            f"MindSpore has no bfloat16 kernel for {', '.join(layers)} on Ascend, "
            f"and --amp {spec.amp} converts it; O1 leaves it in float32.",
            {"amp": "O1"},
        )


# Layers and functions whose forward or backward pass found no Ascend kernel in bfloat16
# in the dry run of a compiled training step, by the level that converts them.
_CONVERTED = {
    "AdaptiveAvgPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "Dropout2d",
    "GRU",
    "MaxPool1d",
    "MaxPool2d",
    "ReLU6",
    "avg_pool2d",
    "max_pool2d",
}
_NO_BFLOAT16 = {"O2": _CONVERTED, "O3": _CONVERTED, "auto": {"MaxPool2d"}}


def _scale_options(spec: TrainingSpec) -> Iterator[Problem]:
    dynamic_only = ("loss_scale_factor", "loss_scale_window")
    for option in OPTIONS:
        value = getattr(spec, option.field)
        if not option.field.startswith("loss_scale_") or value is None:
            continue
        if spec.scaling == "none":
            if spec.loss_scale is None:
                # The value says that scaling is wanted; only its kind was left open.
                kind = "dynamic" if option.field in dynamic_only else "fixed"
                fix: dict[str, Any] = {"loss_scale": kind}
                why = f"no scaling is on (--amp {spec.amp} alone turns none on)"
            else:
                fix, why = {option.field: None}, "--loss-scale none asks for no scaling"
            yield Problem(
                f"{_flag(option, value)} --loss-scale none",
                f"It sets loss scaling, but {why}.",
                fix,
            )
        elif spec.scaling == "fixed" and option.field in dynamic_only:
            yield Problem(
                f"{_flag(option, value)} --loss-scale fixed",
                "A fixed scale never changes; only a dynamic one has this.",
                {option.field: None},
            )


def _own_network(spec: TrainingSpec) -> Iterator[Problem]:
    if not isinstance(spec.model, SourceRef):
        return
    ref, flag = spec.model, f"--model {spec.model}"
    found = _definition("model", ref, source.find_class, ast.ClassDef)
    if isinstance(found, Problem):
        yield found
        return
    tree, cls = found
    init = source.find_method(tree, cls, "__init__")
    required = source.required_arguments(init, skip_first=True) if init else []
    if required:
        yield Problem(
            flag,
            f"The script calls {ref.name}(), but its __init__ requires "
            f"{', '.join(required)}; give them defaults.",
        )
    construct = source.find_method(tree, cls, "construct")
    if construct is None:
        if not cls.bases:
            yield Problem(
                flag, f"{ref.name} is no mindspore.nn.Cell: it has no base class."
            )
        elif {ast.unparse(base) for base in cls.bases} & {"nn.Cell", "Cell"}:
            yield Problem(flag, f"{ref.name} defines no construct method.")
        return
    yield from _construct(spec, cls, construct, flag)


def _construct(
    spec: TrainingSpec, cls: ast.ClassDef, construct: ast.FunctionDef, flag: str
) -> Iterator[Problem]:
    """What graph mode and O1, which both read the source, cannot take.

    Seen with MindSpore 2.7 and 2.10. Graph mode fails on another first argument than
    self, on try, and on lambdas that are given to map or kept in a list. O1 passes over
    an inherited construct, one with try, and what stands in nested functions and
    lambdas: all that stays in float32 without a word.
    """
    graph, o1 = spec.mode == "graph", spec.amp == "O1"
    modes = [*(["--mode graph"] if graph else []), *(["--amp O1"] if o1 else [])]
    if not modes:
        return
    way_out: dict[str, Any] = {}
    if graph:
        way_out["mode"] = "pynative"
    if o1:
        way_out["amp"] = "O2"
    flags = " ".join([flag, *modes])
    arguments = construct.args.posonlyargs + construct.args.args
    first = arguments[0].arg if arguments else None
    if first != "self":
        named = f"is named {first!r}" if first else "is missing"
        yield Problem(
            flags,
            f"The first argument of construct must be named 'self'; it {named} "
            f"(line {construct.lineno}).",
            way_out,
        )
    seen = set()
    for node in source.nodes_of(construct):
        line = getattr(node, "lineno", construct.lineno)
        if isinstance(node, ast.Lambda) and "lambda" not in seen:
            seen.add("lambda")
            yield Problem(
                flags,
                f"construct has a lambda (line {line}): graph mode fails on many, and "
                "O1 leaves what they compute in float32; make it a method.",
                way_out,
            )
        if isinstance(node, ast.Try) and "try" not in seen:
            seen.add("try")
            yield Problem(
                flags,
                f"construct has a try statement (line {line}): graph mode cannot "
                "compile it, and O1 leaves such a network in float32.",
                way_out,
            )
        if isinstance(node, ast.FunctionDef) and o1 and "function" not in seen:
            seen.add("function")
            yield Problem(
                f"{flag} --amp O1",
                f"construct has a nested function (line {line}), which O1 leaves in "
                "float32 without a word; make it a method.",
                {"amp": "O2"},
            )
    if o1 and "LeakyReLU" in _names_in_own_network(spec):
        yield Problem(
            f"{flag} --amp O1",
            "The script would not compile: O1 rewrites the source of LeakyReLU, and "
            "loses a name in it.",
            {"amp": "O2"},
        )
    if o1 and construct not in cls.body:
        yield Problem(
            f"{flag} --amp O1",
            f"{cls.name} inherits its construct, and O1 leaves an inherited one in "
            "float32 without a word.",
            {"amp": "O2"},
        )


def _own_dataset(spec: TrainingSpec) -> Iterator[Problem]:
    if not isinstance(spec.dataset, SourceRef):
        return
    ref, flag = spec.dataset, f"--dataset {spec.dataset}"
    found = _definition("dataset", ref, source.find_function, ast.FunctionDef)
    if isinstance(found, Problem):
        yield found
        return
    _, function = found
    if not source.accepts_args_and_train(function):
        yield Problem(
            flag,
            f"The script calls {ref.name}(args, train=True), which "
            f"{ref.name}({ast.unparse(function.args)}) does not take "
            f"(line {function.lineno}).",
        )


def _definition(
    field: str,
    ref: SourceRef,
    find: Callable[[ast.Module, SourceRef], Node],
    kind: type[Node],
) -> tuple[ast.Module, Node] | Problem:
    """What a reference names, with the tree of its file, or what is wrong with it."""
    flag = f"--{field} {ref}"
    try:
        tree = source.parse_file(ref)
    except source.SourceError as error:
        return Problem(flag, str(error))
    try:
        return tree, find(tree, ref)
    except source.SourceError as error:
        names = source.candidates(tree, kind)
        return Problem(flag, str(error), _other_name(field, ref, names))


def _other_name(field: str, ref: SourceRef, names: list[str]) -> dict[str, Any]:
    """A fix where only the name is wrong and one of the file's names is meant."""
    close = difflib.get_close_matches(ref.name, names, n=1, cutoff=0.5)
    meant = close or (names if len(names) == 1 else [])
    return {field: replace(ref, name=meant[0])} if meant else {}


def _own_files(spec: TrainingSpec) -> Iterator[Problem]:
    for field in ("model", "dataset"):
        ref = getattr(spec, field)
        if not isinstance(ref, SourceRef):
            continue
        module = source.module_name(source.beside(ref, spec.script))
        if not source.is_plain(ref.path):
            yield Problem(
                f"--{field} {ref}", f"The path must be {source.PLAIN}; rename it."
            )
        elif module is not None and module.split(".")[0] in source.TAKEN_MODULES:
            yield Problem(
                f"--{field} {ref}",
                f"The script would import another module named {module!r}; "
                "rename the file.",
            )
        elif source.same_file(ref.path, spec.script):
            yield Problem(
                f"--{field} {ref} -o {spec.script}",
                "The script would replace the file that it imports.",
                {"script": "train.py" if ref.path != "train.py" else "run.py"},
            )


_RULES: tuple[Rule, ...] = (
    _choices,
    _numbers,
    _bfloat16,
    _scale_options,
    _own_network,
    _own_dataset,
    _own_files,
)


def warnings(spec: TrainingSpec) -> list[str]:
    """What works, but not in every way as one might think."""
    found = []
    for field in ("loss_scale_value", "loss_scale_factor"):
        value = getattr(spec, field)
        if value is not None and math.frexp(value)[0] != 0.5:
            flag = "--" + field.replace("_", "-")
            found.append(
                f"{flag} {format_value(value)} is no power of two: scaling then rounds "
                "the gradients, and the weights differ from an unscaled run's."
            )
    low_precision = spec.amp != "O0" and spec.amp_dtype == "float16"
    if low_precision and spec.scaling == "none":
        found.append(
            "--loss-scale none with float16: gradients below 6e-8 become zero, and "
            "an overflow reaches the weights."
        )
    if spec.amp == "O3":
        found.append(
            "--amp O3 runs normalization in low precision too; O2 keeps it in float32."
        )
    if spec.accum > 1 and has_batch_norm(spec):
        found.append(
            f"--accum {spec.accum} with BatchNorm: it normalizes each micro-batch by "
            "itself, so a window is not quite one large batch."
        )
    if any("Dropout" in name for name in _names_in_own_network(spec)):
        found.append(
            f"--model {spec.model} with Dropout: its random state is where no "
            "checkpoint reaches it, so a resumed run drops other units."
        )
    for field in ("model", "dataset"):
        ref = getattr(spec, field)
        if isinstance(ref, SourceRef):
            near = source.beside(ref, spec.script)
            if source.module_name(near) is None:
                found.append(
                    f"--{field} {ref}: the script cannot import it from there; "
                    f"put {near.path.rpartition('/')[2]} beside the script."
                )
    return found


def has_batch_norm(spec: TrainingSpec) -> bool:
    """Whether the network keeps running statistics, as far as its source shows."""
    if isinstance(spec.model, SourceRef):
        return any("BatchNorm" in name for name in _names_in_own_network(spec))
    return MODELS[spec.model].batch_norm


def _names_in_own_network(spec: TrainingSpec) -> set[str]:
    """What the file of a user's network mentions; nothing if it cannot be read."""
    if not isinstance(spec.model, SourceRef):
        return set()
    try:
        return source.names_used(source.parse_file(spec.model))
    except source.SourceError:
        return set()
