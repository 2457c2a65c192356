"""Finding, in a script's syntax tree, what it uses of MindSpore.

The script is read, not run. A value is followed from where it is made to where it is
used: through assignments, attributes of the script's own classes, arguments and results
of its own functions. Where a value's way is lost, a call on it is *not judged*: it may
be MindSpore's, and is listed as such.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from generator import source
from generator.spec import SourceRef
from generator.verify.ascend.values import (
    CARRIER,
    CONTAINER,
    OTHER,
    UNKNOWN,
    Atom,
    Container,
    Function,
    Instance,
    Module,
    Ms,
    Other,
    Own,
    Taking,
    Target,
    Unknown,
    Value,
    bounded,
    container,
    plain,
    yields,
)

TENSOR: Target = ("guess", "mindspore.Tensor")
# What MindSpore hands to methods that it calls itself.
GIVEN = {"run_context": ("result", ("name", "mindspore.train.RunContext"))}
# Functions whose result is their first argument, as far as its methods go.
SAME = {
    "mindspore.amp.auto_mixed_precision",
    "mindspore.jit",
    "mindspore.train.amp.auto_mixed_precision",
}
# Functions that return a function which is none of MindSpore's names.
MAKES_FUNCTION = {
    "mindspore.grad",
    "mindspore.ops.grad",
    "mindspore.ops.value_and_grad",
    "mindspore.value_and_grad",
}
# Functions that return a dict, and methods that return a list, of parameters.
PARAMETER: Target = ("result", ("name", "mindspore.Parameter"))
MAKES_DICT = {"mindspore.load_checkpoint"}
LISTS_PARAMETERS = {
    "get_parameters",
    "parameters",
    "trainable_params",
    "untrainable_params",
}
# Methods of containers: what takes items out, what gives them all, what puts some in.
TAKES = {"get", "pop", "popitem", "popleft", "setdefault"}
LISTS = {"copy", "items", "values"}
ADDS = {"add", "append", "appendleft", "extend", "insert", "update"}
COLLECTS = {"dict", "frozenset", "list", "reversed", "set", "sorted", "tuple", "vars"}
# Methods after which a value is Python's or NumPy's.
LEAVES = {"asnumpy", "get_dataset_size", "item", "numpy", "tolist"}
# Modules of Python whose functions hand on what they are given.
CARRIERS = {"copy", "functools", "itertools", "operator", "importlib"}
SCALARS = {
    abs,
    all,
    any,
    bool,
    callable,
    float,
    format,
    hash,
    hasattr,
    id,
    int,
    len,
} | {*(isinstance, issubclass, open, ord, print, range, repr, round, str, type)}
ROUNDS = 4


@dataclass(frozen=True)
class Use:
    """One place where a script uses MindSpore, or may.

    Attributes:
        text: the name as the script has it.
        targets: what it may be; empty if that is not known.
        call: the call, or None where a name is only mentioned.
        file: the module beside the script in which it is, or "" for the script.
    """

    line: int
    text: str
    targets: tuple[Target, ...]
    call: ast.Call | None
    file: str = ""


@dataclass
class Reading:
    """What was found in a script."""

    uses: list[Use] = field(default_factory=list)
    bases: dict[ast.ClassDef, Value] = field(default_factory=dict)
    values: dict[ast.expr, Value] = field(default_factory=dict)
    trees: dict[str, ast.Module] = field(default_factory=dict)


def read(tree: ast.Module, folder: Path | None = None) -> Reading:
    """All uses of MindSpore in a script, in the order of its lines.

    ``folder`` is the script's: modules that lie in it are the user's own, and read too.
    """
    reader = _Reader(folder)
    for _ in range(ROUNDS):
        before = reader.state()
        reader.run(tree)
        if reader.state() == before:
            break
    reader.reading.uses.sort(key=lambda use: (use.file, use.line))
    near = {path.name: found for path, found in reader.trees.items() if found}
    reader.reading.trees = {"": tree, **near}
    return reader.reading


class _Scope:
    def __init__(self, parent: _Scope | None = None, cls: ast.ClassDef | None = None):
        self.parent, self.cls = parent, cls
        self.names: dict[str, Value] = {}
        self.outer: set[str] = set()  # declared global or nonlocal

    def find(self, name: str) -> Value:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        if name in SCALARS:
            return OTHER
        return CARRIER if hasattr(builtins, name) else UNKNOWN


class _Reader:
    """Reads the tree once per round; arguments and results go into the next round."""

    def __init__(self, folder: Path | None):
        self.folder = folder
        self.reading = Reading()
        self.arguments: dict[tuple[ast.AST, str], Value] = {}
        self.results: dict[ast.AST, Value] = {}
        self.attributes: dict[tuple[ast.ClassDef, str], Value] = {}
        self.methods: dict[ast.ClassDef, dict[str, Function]] = defaultdict(dict)
        self.pending: list[tuple[Function, _Scope, ast.ClassDef | None, str]] = []
        self.branches = 0
        self.function: Function | None = None
        # Files beside the script: their trees, and the names of a round.
        self.trees: dict[Path, ast.Module | None] = {}
        self.modules: dict[Path, _Scope] = {}
        self.file = ""

    def state(self) -> tuple[object, ...]:
        return dict(self.arguments), dict(self.results), dict(self.attributes)

    def run(self, tree: ast.Module) -> None:
        self.reading, self.modules = Reading(), {}
        self.statements(tree.body, _Scope())
        while self.pending:
            node, scope, cls, self.file = self.pending.pop(0)
            self.body(node, scope, cls)
        self.file = ""

    # Statements

    def statements(self, body: Iterable[ast.stmt], scope: _Scope) -> None:
        for statement in body:
            method = getattr(self, f"on_{type(statement).__name__}", self.on_any)
            method(statement, scope)

    def on_any(self, statement: ast.AST, scope: _Scope) -> None:
        """Whatever has no method of its own: its parts are read in their order."""
        self.branches += 1  # a body of it may run or not
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.value(child, scope)
            elif isinstance(child, ast.stmt):
                self.statements([child], scope)
            elif isinstance(child, ast.withitem):
                value = self.value(child.context_expr, scope)
                if child.optional_vars is not None:
                    # Most objects return themselves when they are entered.
                    self.assign(child.optional_vars, value, scope)
            else:  # a handler, a case, a pattern
                if isinstance(child, ast.ExceptHandler) and child.name:
                    self.bind(child.name, OTHER, scope)
                for name in ("name", "rest"):
                    captured = getattr(child, name, None)
                    if isinstance(child, ast.pattern) and isinstance(captured, str):
                        self.bind(captured, UNKNOWN, scope)
                self.on_any(child, scope)
        self.branches -= 1

    def on_Import(self, statement: ast.Import, scope: _Scope) -> None:
        for alias in statement.names:
            root = alias.name.split(".")[0]
            if root == "mindspore":
                self.mention(statement.lineno, alias.name, ("name", alias.name))
            shown = alias.name if alias.asname else root
            self.bind(alias.asname or root, self.module(shown), scope)

    def on_ImportFrom(self, statement: ast.ImportFrom, scope: _Scope) -> None:
        module = statement.module or ""
        for alias in statement.names:
            value = UNKNOWN if statement.level else self.module(module)
            own = next((atom for atom in value if isinstance(atom, Module)), None)
            if alias.name == "*":  # of others, names are not found, and so unknown
                names = self.names_of(own) if own else {}
                for name, item in names.items():
                    self.bind(name, item, scope)
                continue
            if own:
                value = self.member(own, alias.name)
            if module.split(".")[0] == "mindspore" and not statement.level:
                target = ("name", f"{module}.{alias.name}")
                self.mention(statement.lineno, f"{module}.{alias.name}", target)
                value = frozenset([Ms(target)])
            self.bind(alias.asname or alias.name, value, scope)

    def module(self, name: str) -> Value:
        root = name.split(".")[0]
        if root == "mindspore":
            return frozenset([Ms(("name", name))])
        if root not in sys.stdlib_module_names and self.folder is not None:
            near = self.folder.joinpath(*name.split("."))
            for path in (near.with_suffix(".py"), near / "__init__.py"):
                if path.is_file():
                    return frozenset([Module(path)])
            if (self.folder / root).is_dir():
                return UNKNOWN
        return CARRIER if root in CARRIERS else OTHER

    def names_of(self, module: Module) -> dict[str, Value]:
        """What a file beside the script defines; nothing if it cannot be read."""
        path = module.path
        if path not in self.trees:
            try:
                self.trees[path] = source.parse_file(SourceRef(str(path), ""))
            except source.SourceError:
                self.trees[path] = None
        tree = self.trees[path]
        if tree is None:
            return {}
        if path not in self.modules:
            self.modules[path] = scope = _Scope()
            outer = self.file, self.branches, self.function
            self.file, self.branches, self.function = path.name, 0, None
            self.statements(tree.body, scope)
            self.file, self.branches, self.function = outer
        return self.modules[path].names

    def on_FunctionDef(self, node: ast.FunctionDef, scope: _Scope) -> None:
        self.decorated(node, scope)
        self.bind(node.name, frozenset([Own(node)]), scope)
        self.pending.append((node, scope, None, self.file))

    def on_AsyncFunctionDef(self, node: ast.AsyncFunctionDef, scope: _Scope) -> None:
        self.decorated(node, scope)
        self.bind(node.name, frozenset([Own(node)]), scope)
        self.pending.append((node, scope, None, self.file))

    def decorated(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: _Scope
    ) -> None:
        for decorator in node.decorator_list:
            self.value(decorator, scope)
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        for default in filter(None, defaults):
            self.value(default, scope)

    def on_ClassDef(self, node: ast.ClassDef, scope: _Scope) -> None:
        for decorator in node.decorator_list:
            self.value(decorator, scope)
        bases = [self.value(base, scope) for base in node.bases]
        self.reading.bases[node] = frozenset().union(*bases) if bases else OTHER
        inside = _Scope(scope, node)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                self.decorated(statement, inside)
                self.methods[node][statement.name] = statement
                # A method does not see the names of its class's body.
                self.pending.append((statement, scope, node, self.file))
            else:
                self.statements([statement], inside)
        for name, value in inside.names.items():
            self.keep(node, name, value)
        self.bind(node.name, frozenset([Own(node)]), scope)

    def body(self, node: Function, scope: _Scope, cls: ast.ClassDef | None) -> None:
        """Read a function's body; its arguments are what its callers give."""
        inside = _Scope(scope, cls)
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        static = isinstance(node, ast.FunctionDef) and any(
            isinstance(decorator, ast.Name) and decorator.id == "staticmethod"
            for decorator in node.decorator_list
        )
        defaults: dict[str, ast.expr] = {}
        positional = named[: len(named) - len(arguments.kwonlyargs)]
        first_default = len(positional) - len(arguments.defaults)
        for index, default in enumerate(arguments.defaults):
            defaults[positional[first_default + index].arg] = default
        for arg, extra in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if extra is not None:
                defaults[arg.arg] = extra
        for index, argument in enumerate(named):
            if cls is not None and index == 0 and not static:
                inside.names[argument.arg] = frozenset([Instance(cls)])
                continue
            value = self.arguments.get((node, argument.arg))
            if value is None:
                value = self.unbound(node, argument.arg, defaults, scope, cls)
            inside.names[argument.arg] = value
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                inside.names[rest.arg] = CONTAINER
        outer, self.function = self.function, node
        branches, self.branches = self.branches, 0
        if isinstance(node, ast.Lambda):
            self.result(node, self.value(node.body, inside))
        else:
            self.statements(node.body, inside)
            self.results.setdefault(node, OTHER)  # it returns nothing
        self.function, self.branches = outer, branches

    def unbound(
        self,
        node: Function,
        name: str,
        defaults: dict[str, ast.expr],
        scope: _Scope,
        cls: ast.ClassDef | None,
    ) -> Value:
        """An argument that no call in the script gives."""
        if cls is not None and self.of_mindspore(cls):
            if name in GIVEN:
                return frozenset([Ms(GIVEN[name])])
            if isinstance(node, ast.FunctionDef) and node.name == "construct":
                return frozenset([Ms(TENSOR)])
        if name in defaults:
            return self.value(defaults[name], scope)
        return UNKNOWN

    def on_Return(self, statement: ast.Return, scope: _Scope) -> None:
        value = OTHER if statement.value is None else self.value(statement.value, scope)
        if self.function is not None:
            self.result(self.function, value)

    def result(self, node: Function, value: Value) -> None:
        self.results[node] = bounded(self.results.get(node, frozenset()) | value)

    def on_Assign(self, statement: ast.Assign, scope: _Scope) -> None:
        value = self.value(statement.value, scope)
        for target in statement.targets:
            if (
                isinstance(target, ast.Tuple)
                and isinstance(statement.value, ast.Tuple)
                and len(target.elts) == len(statement.value.elts)
            ):
                for name, item in zip(target.elts, statement.value.elts, strict=True):
                    self.assign(name, self.reading.values[item], scope)
            else:
                self.assign(target, value, scope)

    def on_AnnAssign(self, statement: ast.AnnAssign, scope: _Scope) -> None:
        if statement.value is not None:
            value = self.value(statement.value, scope)
            self.assign(statement.target, value, scope)

    def on_AugAssign(self, statement: ast.AugAssign, scope: _Scope) -> None:
        value = self.value(statement.value, scope)
        before = OTHER
        if isinstance(statement.target, ast.Name):
            before = scope.find(statement.target.id)
        both = value | before
        self.assign(statement.target, OTHER if both == OTHER else UNKNOWN, scope)

    def on_For(self, statement: ast.For | ast.AsyncFor, scope: _Scope) -> None:
        iterated = self.value(statement.iter, scope)
        self.branches += 1
        self.assign_element(statement.target, statement.iter, iterated, scope)
        self.statements(statement.body, scope)
        self.statements(statement.orelse, scope)
        self.branches -= 1

    on_AsyncFor = on_For

    def on_Global(self, statement: ast.Global | ast.Nonlocal, scope: _Scope) -> None:
        scope.outer |= set(statement.names)

    on_Nonlocal = on_Global

    # Names

    def bind(self, name: str, value: Value, scope: _Scope) -> None:
        """Give a name its value; in a branch, it may still have the one before."""
        if name in scope.outer and scope.parent is not None:
            self.bind(name, value | scope.find(name), scope.parent)
            return
        if self.branches and name in scope.names:
            value = value | scope.names[name]
        scope.names[name] = bounded(value)

    def keep(self, cls: ast.ClassDef, name: str, value: Value) -> None:
        key = (cls, name)
        self.attributes[key] = bounded(self.attributes.get(key, frozenset()) | value)

    def assign(self, target: ast.expr, value: Value, scope: _Scope) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, value, scope)
        elif isinstance(target, ast.Attribute):
            for atom in self.value(target.value, scope):
                if isinstance(atom, Instance):
                    self.keep(atom.node, target.attr, value)
        elif isinstance(target, ast.Tuple | ast.List):
            part = value if value == OTHER or value == {Ms(TENSOR)} else UNKNOWN
            for item in target.elts:
                self.assign(item, part, scope)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, CONTAINER, scope)
        elif isinstance(target, ast.Subscript):
            self.value(target, scope)
            self.fill(target.value, [value], scope)
        else:
            self.value(target, scope)

    def assign_element(
        self, target: ast.expr, source: ast.expr, iterated: Value, scope: _Scope
    ) -> None:
        """The target of a for: an item of what is iterated."""
        if (
            isinstance(source, ast.Call)
            and isinstance(source.func, ast.Name)
            and source.func.id == "enumerate"
            and source.args
            and isinstance(target, ast.Tuple)
            and len(target.elts) == 2
        ):
            inner = self.reading.values.get(source.args[0], UNKNOWN)
            self.assign(target.elts[0], OTHER, scope)
            self.assign_element(target.elts[1], source.args[0], inner, scope)
            return
        if (
            isinstance(source, ast.Call)
            and isinstance(source.func, ast.Attribute)
            and source.func.attr == "items"
            and isinstance(target, ast.Tuple)
        ):
            self.assign(target.elts[0], OTHER, scope)
            self.assign(target.elts[-1], self.element(iterated), scope)
            return
        self.assign(target, self.element(iterated), scope)

    def element(self, value: Value) -> Value:
        found: set[Atom] = set()
        for atom in value:
            if isinstance(atom, Other):
                found.add(Other())
            elif isinstance(atom, Container):
                found |= atom.items
            elif isinstance(atom, Ms) and yields(
                atom.target, {"create_tuple_iterator"}
            ):
                found.add(Ms(TENSOR))
            elif isinstance(atom, Ms) and yields(atom.target, LISTS_PARAMETERS):
                found.add(Ms(PARAMETER))
            else:
                found.add(Unknown())
        return frozenset(found)

    # Expressions

    def value(self, node: ast.expr, scope: _Scope) -> Value:
        method = getattr(self, f"of_{type(node).__name__}", self.of_any)
        value = self.reading.values[node] = bounded(method(node, scope))
        return value

    def of_any(self, node: ast.AST, scope: _Scope) -> Value:
        """An operation: Other if all its parts are, else unknown."""
        parts = [
            self.value(child, scope) if isinstance(child, ast.expr) else OTHER
            for child in ast.iter_child_nodes(node)
        ]
        return OTHER if all(plain(part) for part in parts) else UNKNOWN

    def of_BinOp(self, node: ast.BinOp, scope: _Scope) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        parts = left | right
        if all(isinstance(atom, Container | Other) for atom in parts):
            return parts  # lists and dicts are put together, numbers added
        return UNKNOWN

    def of_Constant(self, node: ast.Constant, scope: _Scope) -> Value:
        return OTHER

    def of_JoinedStr(self, node: ast.JoinedStr, scope: _Scope) -> Value:
        for child in ast.walk(node):
            if isinstance(child, ast.FormattedValue):
                self.value(child.value, scope)
        return OTHER

    def of_Compare(self, node: ast.Compare, scope: _Scope) -> Value:
        names = all(isinstance(op, ast.Is | ast.IsNot | ast.In) for op in node.ops)
        value = self.of_any(node, scope)
        return OTHER if names else value

    def of_Name(self, node: ast.Name, scope: _Scope) -> Value:
        return scope.find(node.id)

    def of_NamedExpr(self, node: ast.NamedExpr, scope: _Scope) -> Value:
        value = self.value(node.value, scope)
        self.assign(node.target, value, scope)
        return value

    def of_IfExp(self, node: ast.IfExp, scope: _Scope) -> Value:
        self.value(node.test, scope)
        return self.value(node.body, scope) | self.value(node.orelse, scope)

    def of_BoolOp(self, node: ast.BoolOp, scope: _Scope) -> Value:
        return frozenset().union(*(self.value(part, scope) for part in node.values))

    def of_Lambda(self, node: ast.Lambda, scope: _Scope) -> Value:
        self.pending.append((node, scope, None, self.file))
        return frozenset([Own(node)])

    def of_Tuple(self, node: ast.Tuple | ast.List | ast.Set, scope: _Scope) -> Value:
        return container([self.value(item, scope) for item in node.elts])

    of_List = of_Set = of_Tuple

    def of_Dict(self, node: ast.Dict, scope: _Scope) -> Value:
        keys = [self.value(key, scope) for key in node.keys if key is not None]
        parts = [self.value(item, scope) for item in node.values]
        return container(parts) if all(map(plain, keys)) else CONTAINER

    def of_ListComp(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        scope: _Scope,
    ) -> Value:
        inside = _Scope(scope)
        for part in node.generators:
            iterated = self.value(part.iter, inside)
            self.assign_element(part.target, part.iter, iterated, inside)
            for test in part.ifs:
                self.value(test, inside)
        if isinstance(node, ast.DictComp):
            self.value(node.key, inside)
        item = node.value if isinstance(node, ast.DictComp) else node.elt
        return container([self.value(item, inside)])

    of_SetComp = of_GeneratorExp = of_DictComp = of_ListComp

    def of_Subscript(self, node: ast.Subscript, scope: _Scope) -> Value:
        value = self.value(node.value, scope)
        self.value(node.slice, scope)
        if value == {Ms(TENSOR)}:
            return value
        return self.element(value)

    def of_Slice(self, node: ast.Slice, scope: _Scope) -> Value:
        for part in filter(None, (node.lower, node.upper, node.step)):
            self.value(part, scope)
        return OTHER

    def of_Attribute(self, node: ast.Attribute, scope: _Scope) -> Value:
        value = self.attribute(node, scope)
        for atom in value:
            if isinstance(atom, Ms) and atom.target[0] == "name":
                self.mention(node.lineno, ast.unparse(node), atom.target)
        return value

    def attribute(self, node: ast.Attribute, scope: _Scope) -> Value:
        found: set[Atom] = set()
        for atom in self.of_owner(node.value, scope):
            found |= self.member(atom, node.attr)
        return bounded(frozenset(found))

    def of_owner(self, node: ast.expr, scope: _Scope) -> Value:
        """The value before a dot; a chain of names is mentioned once, in full."""
        if isinstance(node, ast.Attribute):
            value = self.reading.values[node] = self.attribute(node, scope)
            return value
        return self.value(node, scope)

    def member(self, atom: Atom, name: str) -> Value:
        if isinstance(atom, Ms):
            if atom.target[0] == "name":
                return frozenset([Ms(("name", f"{atom.target[1]}.{name}"))])
            return frozenset([Ms(("attr", atom.target, name))])
        if isinstance(atom, Other):
            return frozenset([atom])
        if isinstance(atom, Container):
            return frozenset([Taking(atom.items, name)])
        if isinstance(atom, Module):
            return self.names_of(atom).get(name, UNKNOWN)
        cls = atom.node if isinstance(atom, Instance | Own) else None
        if isinstance(cls, ast.ClassDef):
            return self.inherited(cls, name, as_class=isinstance(atom, Own))
        return UNKNOWN

    def inherited(self, cls: ast.ClassDef, name: str, as_class: bool) -> Value:
        """An attribute of a class of the script, its own or from a base."""
        if (cls, name) in self.attributes:
            return self.attributes[cls, name]
        if name in self.methods[cls]:
            return frozenset([Own(self.methods[cls][name], None if as_class else cls)])
        found: set[Atom] = set()
        for base in self.reading.bases.get(cls, OTHER):
            if isinstance(base, Own) and isinstance(base.node, ast.ClassDef):
                if base.node is not cls:
                    found |= self.inherited(base.node, name, as_class)
            elif isinstance(base, Ms):
                owner = base.target if as_class else ("result", base.target)
                found.add(Ms(("attr", owner, name)))
            else:
                found.add(Unknown() if isinstance(base, Unknown) else Other())
        return frozenset(found)

    def of_mindspore(self, cls: ast.ClassDef) -> bool:
        """Whether a class of the script comes from one of MindSpore."""
        for base in self.reading.bases.get(cls, OTHER):
            if isinstance(base, Ms):
                return True
            own = base.node if isinstance(base, Own) else cls
            if own is not cls and isinstance(own, ast.ClassDef):
                return self.of_mindspore(own)
        return False

    def of_Call(self, node: ast.Call, scope: _Scope) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self.parents(scope)
        called = self.of_owner(node.func, scope)
        self.reading.values[node.func] = called
        given = [self.value(argument, scope) for argument in node.args]
        named = {word.arg: self.value(word.value, scope) for word in node.keywords}
        if isinstance(node.func, ast.Attribute) and node.func.attr in ADDS:
            self.fill(node.func.value, [*given, *named.values()], scope)
        targets = tuple(
            sorted((atom.target for atom in called if isinstance(atom, Ms)), key=repr)
        )
        if targets or called == UNKNOWN:
            text = ast.unparse(node.func)
            self.reading.uses.append(Use(node.lineno, text, targets, node, self.file))
        found: set[Atom] = set()
        for atom in called:
            found |= self.returned(atom, node, given, named)
        return frozenset(found)

    def fill(self, holder: ast.expr, given: list[Value], scope: _Scope) -> None:
        """Something is put into what may be a container."""
        before = self.reading.values.get(holder, OTHER)
        harmless = all(plain(value) for value in given)
        if any(isinstance(atom, Container) for atom in before) or (
            before == OTHER and not harmless
        ):
            items = {
                atom
                for value in [*given, *([] if before != OTHER else [OTHER])]
                for atom in value
            }
            self.branches += 1  # what it held before, it still holds
            self.assign(holder, frozenset([Container(frozenset(items))]), scope)
            self.branches -= 1

    def parents(self, scope: _Scope) -> Value:
        where: _Scope | None = scope
        while where is not None and where.cls is None:
            where = where.parent
        if where is None or where.cls is None:
            return UNKNOWN
        found: set[Atom] = set()
        for base in self.reading.bases.get(where.cls, OTHER):
            if isinstance(base, Ms):
                found.add(Ms(("result", base.target)))
            elif isinstance(base, Own) and isinstance(base.node, ast.ClassDef):
                found.add(Instance(base.node))
            else:
                found.add(base)
        return frozenset(found)

    def returned(
        self,
        atom: Atom,
        node: ast.Call,
        given: list[Value],
        named: dict[str | None, Value],
    ) -> Value:
        """What a call of this atom returns."""
        if isinstance(atom, Ms):
            name = atom.target[1] if atom.target[0] == "name" else None
            if name in SAME and given:
                return given[0]
            if name in SAME | MAKES_FUNCTION:  # @ms.jit(...) is called without one
                return frozenset([Other("anything")])
            if name in MAKES_DICT:
                return frozenset([Container(frozenset([Ms(PARAMETER)]))])
            if atom.target[0] == "attr" and atom.target[2] in LEAVES:
                return OTHER
            return frozenset([Ms(("result", atom.target))])
        if isinstance(atom, Own):
            if isinstance(atom.node, ast.ClassDef):
                self.construct(atom.node, node, given, named)
                return frozenset([Instance(atom.node)])
            self.give(atom.node, atom.cls is not None, node, given, named)
            return self.results.get(atom.node, frozenset())
        if isinstance(atom, Taking):
            if atom.name in TAKES:
                return atom.items
            return frozenset([Container(atom.items)]) if atom.name in LISTS else OTHER
        if isinstance(atom, Instance):
            return self.call_instance(atom.node, node, given, named)
        if isinstance(atom, Other):
            harmless = all(plain(value) for value in [*given, *named.values()])
            if isinstance(node.func, ast.Name) and node.func.id in COLLECTS:
                if given and not harmless:
                    return frozenset([Container(self.element(given[0]))])
                return OTHER if harmless and given else frozenset([Container(OTHER)])
            if atom.gives == "anything" or (atom.gives == "arguments" and not harmless):
                return UNKNOWN
            return OTHER
        return UNKNOWN

    def construct(
        self,
        cls: ast.ClassDef,
        node: ast.Call,
        given: list[Value],
        named: dict[str | None, Value],
    ) -> None:
        for atom in self.inherited(cls, "__init__", as_class=False):
            if isinstance(atom, Own) and not isinstance(atom.node, ast.ClassDef):
                self.give(atom.node, True, node, given, named)

    def call_instance(
        self,
        cls: ast.ClassDef,
        node: ast.Call,
        given: list[Value],
        named: dict[str | None, Value],
    ) -> Value:
        for name in ("__call__", "construct"):
            for atom in self.inherited(cls, name, as_class=False):
                if isinstance(atom, Own) and not isinstance(atom.node, ast.ClassDef):
                    self.give(atom.node, True, node, given, named)
                    return self.results.get(atom.node, frozenset())
        return frozenset([Ms(TENSOR)]) if self.of_mindspore(cls) else UNKNOWN

    def give(
        self,
        function: Function,
        bound: bool,
        node: ast.Call,
        given: list[Value],
        named: dict[str | None, Value],
    ) -> None:
        """Keep what a call gives to each argument of a function of the script."""
        arguments = function.args
        names = [arg.arg for arg in [*arguments.posonlyargs, *arguments.args]]
        words = {arg.arg for arg in [*arguments.args, *arguments.kwonlyargs]}
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            given = []
        pairs = list(zip(names[1 if bound else 0 :], given, strict=False))
        pairs += [(str(name), v) for name, v in named.items() if name in words]
        for name, value in pairs:
            key = (function, name)
            self.arguments[key] = bounded(self.arguments.get(key, frozenset()) | value)

    def mention(self, line: int, text: str, target: Target) -> None:
        self.reading.uses.append(Use(line, text, (target,), None, self.file))
