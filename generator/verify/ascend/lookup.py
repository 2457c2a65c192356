"""Looks names up in the installed MindSpore; ``static.py`` starts it.

    python lookup.py < targets.json > facts.json

The targets are those of :mod:`generator.verify.ascend.values`. This file runs in the
interpreter whose MindSpore is asked, and imports nothing of ours.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from typing import Any

# Classes that docstrings name as what a function returns.
RETURNED = {
    "Cell": "mindspore.nn.Cell",
    "Dataset": "mindspore.dataset.Dataset",
    "Parameter": "mindspore.Parameter",
    "ParameterTuple": "mindspore.ParameterTuple",
    "Tensor": "mindspore.Tensor",
}
# Attributes of objects that scripts call methods of.
ATTRIBUTES = {
    ("Optimizer", "parameters"): "mindspore.ParameterTuple",
}
RUNS = ("construct", "__call__")  # what a call of an object runs
PUBLIC = ("mindspore", "mindspore.nn", "mindspore.train", "mindspore.amp")
DEPRECATED = re.compile(
    r"[^.]*\b(?:(?:is|are|been|was) deprecated\b|\.\. deprecated::)"
    r"[^.]*(?:\.\d[^.]*)*\.?",
    re.IGNORECASE,
)


class Missing(Exception):
    """MindSpore has no such name."""


class Unclear(Exception):
    """It cannot be told what this is."""


class Instance:
    """An object that the script would have, known by its class alone."""

    def __init__(self, cls: type, guessed: bool = False):
        self.cls, self.guessed = cls, guessed


class Method:
    """A function that is looked up on an object: its first argument is given."""

    def __init__(self, owner: Instance, function: Any, name: str):
        self.owner, self.function, self.name = owner, function, name


def main() -> None:
    """Answer what is asked on standard input."""
    asked = json.load(sys.stdin)
    version = importlib.import_module("mindspore").__version__
    facts = {json.dumps(target): fact(target) for target in asked}
    answer = {"version": version, "facts": facts, "methods": sorted(methods())}
    # MindSpore prints notes of its own to standard output.
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


def fact(target: Any) -> dict[str, Any]:
    """All that the static check wants to know of one target."""
    try:
        found = resolve(target)
    except Missing as error:
        return {"status": "missing", "why": str(error), "near": near(target)}
    except Unclear as error:
        return {"status": "unclear", "why": str(error)}
    return {"status": "found", "name": name_of(found), **describe(found)}


def resolve(target: Any) -> Any:
    """The object, class, method or :class:`Instance` that a target is.

    Raises:
        Missing: if MindSpore has no such name.
        Unclear: if it cannot be told without running the script.
    """
    kind = target[0]
    if kind == "name":
        return by_name(target[1])
    if kind == "guess":
        return Instance(by_name(target[1]), guessed=True)
    try:
        inner = resolve(target[1])
    except Missing as error:  # that is said where the inner one stands
        raise Unclear("what it is called on") from error
    return result(inner) if kind == "result" else attribute(inner, target[2])


def by_name(dotted: str) -> Any:
    """The module, or what of a module has this name."""
    parts = dotted.split(".")
    found: Any = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], start=2):
        if inspect.isclass(found) or not hasattr(found, part):
            module = ".".join(parts[:index])
            try:
                found = getattr(found, part)
            except AttributeError:
                try:
                    found = importlib.import_module(module)
                except ImportError as error:
                    raise Missing(f"there is no {module}") from error
        else:
            found = getattr(found, part)
    return found


def result(found: Any) -> Any:
    """What a call returns."""
    if inspect.isclass(found):
        return Instance(found)
    if isinstance(found, Instance):
        if issubclass(found.cls, by_name("mindspore.nn.Cell")) or is_primitive(found):
            return Instance(by_name("mindspore.Tensor"), guessed=True)
        raise Unclear(f"what a {found.cls.__name__} returns when it is called")
    function = found.function if isinstance(found, Method) else found
    name = getattr(function, "__name__", str(function))
    text = inspect.getdoc(function) or ""
    said = re.search(r"^Returns:\s*\n\s+`*:?(?:class:)?`*(\w+)", text, re.MULTILINE)
    if said and said.group(1) in RETURNED:
        return Instance(by_name(RETURNED[said.group(1)]))
    if isinstance(found, Method) and issubclass(
        found.owner.cls, by_name("mindspore.Tensor")
    ):
        return Instance(by_name("mindspore.Tensor"), guessed=True)
    if getattr(function, "__module__", "").startswith("mindspore.ops"):
        return Instance(by_name("mindspore.Tensor"), guessed=True)
    raise Unclear(f"what {name} returns")


def is_primitive(found: Instance) -> bool:
    """Whether it is an operator object, as ``ops.MatMul()`` is."""
    return issubclass(found.cls, by_name("mindspore.ops.Primitive"))


def attribute(found: Any, name: str) -> Any:
    """A method or attribute of an object or class."""
    if isinstance(found, Instance):
        for base in found.cls.__mro__:
            if (base.__name__, name) in ATTRIBUTES:
                return Instance(by_name(ATTRIBUTES[base.__name__, name]))
        function = getattr(found.cls, name, None)
        if function is not None:
            if not callable(function):
                raise Unclear(f"{found.cls.__name__}.{name}")
            return Method(found, function, name)
        if found.guessed or assigns(found.cls, name) or extends(found.cls):
            raise Unclear(f"{found.cls.__name__}.{name}")
        raise Missing(f"a {found.cls.__name__} has no {name}")
    if isinstance(found, Method):
        raise Unclear(f"{found.name}.{name}")
    if not hasattr(found, name):
        raise Missing(f"{getattr(found, '__name__', found)} has no {name}")
    return getattr(found, name)


def assigns(cls: type, name: str) -> bool:
    """Whether a class gives its objects an attribute of this name."""
    for base in cls.__mro__:
        try:
            source = inspect.getsource(base)
        except (OSError, TypeError):
            continue
        if re.search(rf"self\.{re.escape(name)}\b|setattr\(self, (?![\"'])", source):
            return True
    return False


def extends(cls: type) -> bool:
    """Whether a class answers to any name (and is no Cell, whose names are known)."""
    cell = by_name("mindspore.nn.Cell")
    return hasattr(cls, "__getattr__") and not issubclass(cls, cell)


def near(target: Any) -> list[str]:
    """Names like the one that is missing, in the place where it was looked for."""
    import difflib

    try:
        if target[0] == "name":
            owner, _, name = target[1].rpartition(".")
            place = by_name(owner)
        else:
            place, name = resolve(target[1]), target[2]
    except (Missing, Unclear, IndexError):
        return []
    place = place.cls if isinstance(place, Instance) else place
    there = [item for item in dir(place) if not item.startswith("_")]
    same = [item for item in there if item.lower() == name.lower()]
    if same:
        return same
    return difflib.get_close_matches(name, there, n=1, cutoff=0.8)


def name_of(found: Any) -> str:
    """A name for tables and messages."""
    if isinstance(found, Instance):
        return f"{found.cls.__module__}.{found.cls.__qualname__}"
    if isinstance(found, Method):
        return f"{found.owner.cls.__module__}.{found.owner.cls.__name__}.{found.name}"
    if inspect.ismodule(found):
        return str(found.__name__)
    module = getattr(found, "__module__", None) or type(found).__module__
    return f"{module}.{getattr(found, '__qualname__', type(found).__qualname__)}"


def describe(found: Any) -> dict[str, Any]:
    """What MindSpore says of it: devices, deprecation, arguments."""
    guessed = False
    if isinstance(found, Instance):
        cls, guessed = found.cls, found.guessed
        run = next((getattr(cls, n) for n in RUNS if hasattr(cls, n)), None)
        texts, function, bound = [cls], run, True
    elif isinstance(found, Method):
        cls, guessed = found.owner.cls, found.owner.guessed
        texts = [found.function, *namesakes(cls, found.name), cls]
        function = found.function
        bound = not isinstance(
            inspect.getattr_static(cls, found.name, None), staticmethod | classmethod
        )
    else:
        texts, function, bound = [found], found, False
    documents = [document(item) for item in texts]
    platforms = next(filter(None, map(platforms_in, documents)), None)
    calls = callable(function) and not inspect.ismodule(found)
    return {
        "guessed": guessed,
        "calls": calls,
        "platforms": platforms,
        "deprecated": deprecated_in(documents[0]) or deprecated_by(function),
        "parameters": parameters(function, bound) if calls else None,
        "document": documents[0],
    }


def document(item: Any) -> str:
    """The docstring, where it is the item's own."""
    if inspect.ismodule(item) or not (inspect.isclass(item) or callable(item)):
        return ""
    if inspect.isclass(item) and item.__doc__ is None:
        return ""
    return inspect.getdoc(item) or ""


def namesakes(cls: type, name: str) -> list[Any]:
    """Functions that a tensor's method stands for; many have no text of their own."""
    if not issubclass(cls, by_name("mindspore.Tensor")):
        return []
    places = ("mindspore.ops", "mindspore.mint", "mindspore.mint.nn.functional")
    found = [getattr(by_name(place), name, None) for place in places]
    return [item for item in found if item is not None]


def platforms_in(text: str) -> list[str] | None:
    """The devices of a docstring's "Supported Platforms"."""
    said = re.search(r"Supported Platforms:\s*\n((?:\s*``.*\n?)+)", text)
    return re.findall(r"``(\w+)``", said.group(1)) if said else None


def deprecated_in(text: str) -> str | None:
    """What a docstring says of its subject's deprecation.

    A paragraph on one argument or one of its values is not on the subject: those stand
    in sections or lists.
    """
    if re.search(r"Supported Platforms:\s*\n\s*Deprecated", text):
        said = next(filter(None, map(_sentence, text.split("\n\n"))), None)
        return said or "it is deprecated"
    before = re.split(r"^(?:Args|Inputs|Parameters|Note):", text, flags=re.MULTILINE)
    for paragraph in before[0].split("\n\n"):
        said = _sentence(paragraph)
        if said and not re.match(r"(?:The )?(?:value|parameter|argument)\b|`", said):
            return said
        if said and re.match(r"`(?:\w+\.)+\w+` is deprecated", said):
            return said
    return None


def _sentence(paragraph: str) -> str | None:
    text = " ".join(paragraph.replace(".. warning::", "").split()).lstrip("- ")
    said = DEPRECATED.search(text)
    return said.group(0).strip() if said else None


def deprecated_by(function: Any) -> str | None:
    """What MindSpore's decorator would say of a deprecated function."""
    candidates = [function]
    if inspect.isclass(function):
        candidates.append(inspect.getattr_static(function, "__init__", None))
    for item in candidates:
        code = getattr(item, "__code__", None)
        if code is None or not code.co_filename.endswith("common/_decorator.py"):
            continue
        cells = [cell.cell_contents for cell in item.__closure__ or ()]
        known = dict(zip(code.co_freevars, cells, strict=True))
        if "version" in known:
            instead = known.get("substitute")
            use = f"; use {instead}" if instead else ""
            return f"it is deprecated from version {known['version']}{use}"
    return None


def parameters(function: Any, bound: bool) -> list[list[Any]] | None:
    """Name, kind, whether it can be left out, and a plain default of each argument."""
    try:
        items = list(signature(function).parameters.values())
    except (TypeError, ValueError):
        if not inspect.isclass(function):
            return None
        return parameters(function.__init__, bound=True)
    if bound and items and items[0].kind is not items[0].VAR_POSITIONAL:
        items = items[1:]
    if {item.kind.name for item in items} == {"VAR_POSITIONAL", "VAR_KEYWORD"}:
        return None
    return [
        [
            item.name,
            item.kind.name,
            item.default is not item.empty,
            item.default if isinstance(item.default, bool | int | str) else None,
        ]
        for item in items
    ]


def signature(function: Any) -> inspect.Signature:
    """The signature, through decorators of MindSpore that do not hand it on."""
    found = inspect.signature(function)
    if {item.kind.name for item in found.parameters.values()} - {
        "VAR_POSITIONAL",
        "VAR_KEYWORD",
    }:
        return found
    start = function.__init__ if inspect.isclass(function) else function
    for cell in getattr(start, "__closure__", None) or ():
        inner = cell.cell_contents
        if inspect.isfunction(inner) and inner.__name__ in ("__init__", "construct"):
            real = inspect.signature(inner)
            if not inspect.isclass(function):
                return real
            return real.replace(parameters=list(real.parameters.values())[1:])
    return found


def methods() -> set[str]:
    """Names of all methods of MindSpore's public classes."""
    places = [*map(by_name, PUBLIC), by_name("mindspore.dataset")]
    return {
        name
        for place in places
        for cls in vars(place).values()
        if inspect.isclass(cls)
        for name in dir(cls)
        if not name.startswith("_")
    }


if __name__ == "__main__":
    main()
