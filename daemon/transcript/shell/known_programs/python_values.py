"""What the expressions of a Python program may be: the strings that its names can hold, by its text alone.

What a name may hold is collected from all places that bind it, in whatever order they run, so branches, loops and
functions need not be followed. A name that is bound in a way that is not followed may hold anything.
"""

from __future__ import annotations

import ast
import posixpath
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import PurePosixPath
from typing import TypeAlias

from daemon.transcript.shell.names import words

MODULES = words(
    "__future__ abc argparse ast base64 bisect calendar collections collections.abc colorsys copy csv dataclasses "
    "datetime decimal difflib enum fnmatch fractions functools glob hashlib heapq hmac html html.parser io itertools "
    "json keyword math os os.path pathlib pprint random re secrets shutil statistics string struct sys textwrap time "
    "tomllib typing unicodedata urllib.parse uuid zlib"
)
"""They write no file by themselves, except the functions below."""
_PATHS = frozenset({"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath"})
_MOST_VALUES = 64
_LONGEST_VALUE = 4096
_DEEPEST = 40

Strings: TypeAlias = frozenset[str] | None
"""What an expression may be, or None where that is not known."""


class NotUnderstood(Exception):  # the answer "no", never an error that anybody sees
    """Something in it may write a file that its text does not name."""


class Values:
    """The names of one program: an expression for each place that binds one, None for anything else.

    `imported` are the names of modules and of what is taken out of them; `taken_from_modules` is what ``from`` imports
    take.
    """

    def __init__(self, nodes: Sequence[ast.AST], folder: str, path: str | None) -> None:
        self._nodes = nodes
        self._folder, self._path = folder, path
        self.imported: dict[str, str] = {}
        self.taken_from_modules: list[str] = []
        self._names: dict[str, list[ast.expr | None]] = defaultdict(list)
        self._items: dict[str, list[ast.expr]] = defaultdict(list)
        self._known: dict[str, Strings] = {}
        loops = (ast.For, ast.AsyncFor, ast.comprehension)
        self._walked = {id(node.iter) for node in nodes if isinstance(node, loops)}
        for node in nodes:
            self._bind(node)
        if self.bound & self.imported.keys():
            raise NotUnderstood

    @property
    def bound(self) -> set[str]:
        """Every name that the program itself binds."""
        return {*self._names, *self._items}

    def dotted(self, node: ast.expr) -> str:
        """What an expression is called where it is part of an imported module, else empty."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def of(self, node: ast.expr | None, depth: int = 0) -> Strings:  # noqa: PLR0911 - kinds of expressions
        if node is None or depth > _DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            is_short = isinstance(node.value, str) and len(node.value) <= _LONGEST_VALUE
            return frozenset({str(node.value)}) if is_short else None
        if isinstance(node, ast.Name):
            return self._named(node.id, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
            joins = _path if isinstance(node.op, ast.Div) else str.__add__
            return _each(joins, self.of(node.left, depth + 1), self.of(node.right, depth + 1))
        if isinstance(node, ast.JoinedStr):
            whole: Strings = frozenset({""})
            for value in node.values:
                is_bare = isinstance(value, ast.FormattedValue) and value.conversion == -1 and value.format_spec is None
                piece = value.value if isinstance(value, ast.FormattedValue) and is_bare else value
                inner = None if isinstance(value, ast.FormattedValue) and not is_bare else self.of(piece, depth + 1)
                whole = _each(str.__add__, whole, inner)
            return whole
        if isinstance(node, ast.IfExp):
            return _union([self.of(node.body, depth + 1), self.of(node.orelse, depth + 1)])
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            return _each(_parent, self.of(node.value, depth + 1), frozenset({""}))
        return self._result(node, depth) if isinstance(node, ast.Call) else None

    def _result(self, node: ast.Call, depth: int) -> Strings:
        dotted = self.dotted(node.func)
        args = [] if node.keywords else [self.of(value, depth + 1) for value in node.args]
        if node.keywords:
            return None
        if dotted in _PATHS or (dotted == "os.path.join" and args):
            joins = _path if dotted in _PATHS else posixpath.join
            whole: Strings = frozenset({""})
            for value in args or [frozenset({"."})]:
                whole = _each(joins, whole, value)
            return whole
        if dotted in ("os.getcwd", "pathlib.Path.cwd"):
            return frozenset({self._folder})
        is_str = isinstance(node.func, ast.Name) and node.func.id == "str" and "str" not in self._names
        if is_str or dotted in ("os.fspath", "os.path.abspath", "os.path.normpath", "os.path.realpath"):
            return args[0] if len(args) == 1 else None
        if dotted == "os.path.dirname" and len(args) == 1:
            return _each(_dirname, args[0], frozenset({""}))
        is_same = isinstance(node.func, ast.Attribute) and not dotted and node.func.attr in ("resolve", "absolute")
        return self.of(node.func.value, depth + 1) if is_same and isinstance(node.func, ast.Attribute) else None

    def _named(self, name: str, depth: int) -> Strings:
        if name == "__file__" and name not in self._names:
            return None if self._path is None else frozenset({self._path})
        if name not in self._known:
            self._known[name] = None  # what depends on itself is not known
            possible = [self.of(expression, depth + 1) for expression in self._names.get(name, ())]
            possible += [self._elements(expression, depth + 1) for expression in self._items.get(name, ())]
            self._known[name] = _union(possible) if possible else None
        return self._known[name]

    def _elements(self, node: ast.expr, depth: int) -> Strings:
        """What the elements of a list that is walked through may be."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return _union([self.of(element, depth) for element in node.elts])
        if isinstance(node, ast.Name) and not self._items.get(node.id) and depth < _DEEPEST:
            bound = self._names.get(node.id, [])
            is_walked = all(
                id(element) in self._walked
                for element in self._nodes
                if isinstance(element, ast.Name) and element.id == node.id and isinstance(element.ctx, ast.Load)
            )
            if bound and all(
                isinstance(element, ast.Tuple) or (is_walked and isinstance(element, ast.List)) for element in bound
            ):
                return _union([self._elements(element, depth + 1) for element in bound if element is not None])
        return None

    def _bind(self, node: ast.AST) -> None:  # noqa: C901, PLR0912 - every way a name is bound
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in MODULES:
                    raise NotUnderstood
                top = alias.name.partition(".")[0]
                self._import(alias.asname or top, alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module not in MODULES:
                raise NotUnderstood
            for alias in node.names:
                self._import(alias.asname or alias.name, f"{node.module}.{alias.name}")
                self.taken_from_modules.append(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value if len(node.targets) == 1 else _unchanging(node.value))
        elif isinstance(node, ast.AnnAssign):
            self._assign(node.target, node.value)
        elif isinstance(node, ast.NamedExpr):
            self._assign(node.target, _unchanging(node.value))
        elif isinstance(node, ast.AugAssign):
            self._assign(node.target, None)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._loop(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._assign(node.optional_vars, None)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._names[node.name].append(None)
        elif isinstance(node, ast.arg):
            self._names[node.arg].append(None)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            self._names[node.name].append(None)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            self._names[node.rest].append(None)

    def _import(self, name: str, dotted: str) -> None:
        if name == "*" or self.imported.setdefault(name, dotted) != dotted:
            raise NotUnderstood

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id].append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            inner = (
                value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else ()
            )
            for at, element in enumerate(target.elts):
                self._assign(element, inner[at] if inner else None)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, None)

    def _loop(self, target: ast.expr, items: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._items[target.id].append(items)
        else:
            self._assign(target, None)


def _union(values: list[Strings]) -> Strings:
    if not values or any(value is None for value in values):
        return None
    whole = frozenset[str]().union(*(value for value in values if value is not None))
    return whole if len(whole) <= _MOST_VALUES else None


def _unchanging(value: ast.expr) -> ast.expr | None:
    """What a second name may be bound to as well, without a change by the one being a change of the other."""
    return None if isinstance(value, ast.List) else value


def _path(first: str, second: str) -> str:
    """As pathlib joins and writes them."""
    return str(PurePosixPath(first, second))


def _parent(path: str, _: str) -> str:
    return str(PurePosixPath(path).parent)


def _dirname(path: str, _: str) -> str:
    return posixpath.dirname(path)


def _each(joined: Callable[[str, str], str], left: Strings, right: Strings) -> Strings:
    if left is None or right is None or len(left) * len(right) > _MOST_VALUES:
        return None
    combined = frozenset(joined(first, second) for first, second in product(left, right))
    return combined if all(len(text) <= _LONGEST_VALUE for text in combined) else None
