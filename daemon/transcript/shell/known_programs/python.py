"""Which files a Python program may have written, by its syntax tree: for programs that open constant paths.

Only a program of which every part is known not to write, or to write to a path that its text tells, is understood. Its
imports are modules of the standard library that bring no other way to a file; whatever hands one of those ways on
(``map(os.remove, names)``), or a name that is bound twice in different ways, ends it. What a name may hold is
asked of all places that bind it, in whatever order they run, so branches, loops and functions need not be followed.
"""

from __future__ import annotations

import ast
import posixpath
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import PurePosixPath
from typing import TypeAlias

from daemon.model import Operation
from daemon.transcript.shell.names import words
from daemon.transcript.shell.state import Effect, is_system
from daemon.transcript.tool_calls import absolute

_NAME = "<recorded program>"
warnings.filterwarnings("ignore", category=SyntaxWarning, module=_NAME)
warnings.filterwarnings("ignore", category=DeprecationWarning, module=_NAME)

_MODULES = words(
    "__future__ abc argparse ast base64 bisect calendar collections collections.abc colorsys copy csv dataclasses "
    "datetime decimal difflib enum fnmatch fractions functools glob hashlib heapq hmac html html.parser io itertools "
    "json keyword math os os.path pathlib pprint random re secrets shutil statistics string struct sys textwrap time "
    "tomllib typing unicodedata urllib.parse uuid zlib"
)
"""They write no file by themselves, but for what is named below."""
_BUILTINS = words("exec eval compile getattr setattr delattr globals locals vars breakpoint open type")
"""Built-in names that lead to anything; ``open`` only where it is called by its name."""
_TARGETS = {
    "os.remove": (0,), "os.unlink": (0,), "os.rmdir": (0,), "os.removedirs": (0,), "os.mkdir": (), "os.makedirs": (),
    "os.truncate": (0,), "os.rename": (0, 1), "os.renames": (0, 1), "os.replace": (0, 1), "shutil.copy": (1,),
    "shutil.copy2": (1,), "shutil.copyfile": (1,), "shutil.copytree": (1,), "shutil.move": (0, 1),
    "shutil.rmtree": (0,),
    "shutil.copymode": (), "shutil.copystat": (), "os.chmod": (), "os.utime": (),
}  # fmt: skip
"""Functions that change files, and which of their arguments name them."""
_HARMLESS = {
    "os": words(
        "path sep linesep curdir pardir environ getcwd getenv listdir walk scandir stat lstat fspath getpid cpu_count "
        "access R_OK W_OK F_OK X_OK name PathLike urandom get_terminal_size extsep pathsep devnull"
    ),
    "sys": words(
        "argv exit stdout stderr stdin version version_info platform maxsize executable byteorder getsizeof "
        "getrecursionlimit setrecursionlimit float_info implementation flags prefix"
    ),
    "shutil": words("which disk_usage get_terminal_size Error SameFileError"),
    "glob": words("glob iglob escape"),
    "pathlib": words("Path PurePath PosixPath PurePosixPath"),
    "io": words("StringIO BytesIO"),
    "urllib": words("parse"),
}
"""What else may be taken out of modules that have ways to files."""
_METHODS = {
    "write_text": (), "write_bytes": (), "unlink": (), "rmdir": (), "touch": (), "rename": (0,), "mkdir": None,
    "chmod": None, "open": (), "replace": (0,),
}  # fmt: skip
"""Methods of paths that change files: which arguments name one beside the path itself; None: no content changes."""
_NEVER = words(
    "symlink_to hardlink_to move copy_into move_into link_to lchmod system popen fdopen FileType raw detach modules "
    "get_type_hints ForwardRef singledispatch singledispatchmethod gi_frame cr_frame ag_frame tb_frame f_globals "
    "f_builtins f_locals"
)
_DUNDERS = words("__init__ __name__ __doc__ __file__ __len__ __str__ __repr__ __eq__ __hash__ __post_init__")
_PATHS = frozenset({"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath"})
_MOST_VALUES = 64
_LONGEST_VALUE = 4096
_MOST_NODES = 20_000
_DEEPEST = 40
_LONGEST = 100_000

_Values: TypeAlias = frozenset[str] | None
"""What an expression may be, or None where that is not known."""


class _NotUnderstood(Exception):  # noqa: N818 - the answer "no", never an error that anybody sees
    """Something in it may write a file that its text does not name."""


def read(text: str, folder: str, path: str | None) -> list[Effect] | None:
    """What a program of this text may have changed, run in `folder`; None where that is not understood."""
    if len(text) > _LONGEST or "\0" in text:
        return None
    try:
        tree = ast.parse(text, _NAME)
        found = _Reader(tree, folder, path).paths()
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, _NotUnderstood):
        return None
    return [Effect(Operation.UNCLEAR, one) for one in found if not is_system(one)]


class _Reader:
    """One program. `names`: what each name is bound to, an expression or None for anything else."""

    def __init__(self, tree: ast.Module, folder: str, path: str | None) -> None:
        self._nodes = list(ast.walk(tree))
        if len(self._nodes) > _MOST_NODES:
            raise _NotUnderstood
        self._folder, self._path = folder, path
        self._imported: dict[str, str] = {}
        self._names: dict[str, list[ast.expr | None]] = defaultdict(list)
        self._items: dict[str, list[ast.expr]] = defaultdict(list)
        self._known: dict[str, _Values] = {}
        self._called = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}
        self._inner = {id(node.value) for node in self._nodes if isinstance(node, ast.Attribute)}
        loops = (ast.For, ast.AsyncFor, ast.comprehension)
        self._walked = {id(node.iter) for node in self._nodes if isinstance(node, loops)}
        for node in self._nodes:
            self._bind(node)
        for name in self._imported:
            if self._names.get(name) or self._items.get(name):
                raise _NotUnderstood
        if {*self._names, *self._items} & _BUILTINS:
            raise _NotUnderstood

    def paths(self) -> list[str]:
        """Absolute paths that it may have changed, in the order of the text."""
        found: dict[str, None] = {}
        for node in self._nodes:
            if isinstance(node, ast.Call):
                for one in self._written(node):
                    found.update(dict.fromkeys(self._absolute(one)))
            elif isinstance(node, ast.Attribute):
                self._check_attribute(node)
            elif isinstance(node, ast.Name):
                self._check_name(node)
        return list(found)

    def _bind(self, node: ast.AST) -> None:  # noqa: C901, PLR0912 - every way a name is bound
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name not in _MODULES:
                    raise _NotUnderstood
                top = one.name.partition(".")[0]
                self._import(one.asname or top, one.name if one.asname else top)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module not in _MODULES:
                raise _NotUnderstood
            for one in node.names:
                self._import(one.asname or one.name, f"{node.module}.{one.name}")
                self._check_member(f"{node.module}.{one.name}", is_called=True, is_inner=True)
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
        if name == "*" or self._imported.setdefault(name, dotted) != dotted:
            raise _NotUnderstood

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id].append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            inner = (
                value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else ()
            )
            for at, one in enumerate(target.elts):
                self._assign(one, inner[at] if inner else None)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, None)

    def _loop(self, target: ast.expr, items: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._items[target.id].append(items)
        else:
            self._assign(target, None)

    def _dotted(self, node: ast.expr) -> str:
        """What an expression is called where it is part of an imported module, else empty."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            before = self._dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def _check_name(self, node: ast.Name) -> None:
        is_called = id(node) in self._called
        if (node.id in _BUILTINS and not (node.id == "open" and is_called)) or _is_hidden(node.id):
            raise _NotUnderstood
        dotted = self._imported.get(node.id, "")
        if dotted and id(node) not in self._inner:
            self._check_member(dotted, is_called=is_called)

    def _check_attribute(self, node: ast.Attribute) -> None:
        dotted, is_called = self._dotted(node), id(node) in self._called
        if node.attr in _NEVER or _is_hidden(node.attr):
            raise _NotUnderstood
        if node.attr in _METHODS and (dotted not in _TARGETS if dotted else not is_called):
            raise _NotUnderstood  # as in map(Path.unlink, names)
        if dotted:
            if not isinstance(node.ctx, ast.Load):
                raise _NotUnderstood
            self._check_member(dotted, is_called=is_called, is_inner=id(node) in self._inner)

    def _check_member(self, dotted: str, *, is_called: bool, is_inner: bool = False) -> None:
        """What is taken out of a module: nothing that writes, but by a call that is looked at, and no other module."""
        module, _, name = dotted.rpartition(".")
        if dotted in _MODULES:
            is_plain = is_inner
        elif dotted in _TARGETS:
            is_plain = is_called
        else:
            is_plain = name in _HARMLESS.get(module, (name,)) and name not in sys.stdlib_module_names
        if not is_plain or name in _NEVER or (name.startswith("_") and dotted not in _MODULES):
            raise _NotUnderstood

    def _written(self, node: ast.Call) -> Iterator[_Values]:
        """What the paths that a call changes may be."""
        dotted = self._dotted(node.func)
        if dotted in _TARGETS:
            yield from self._arguments_at(node, _TARGETS[dotted])
        elif isinstance(node.func, ast.Name) and node.func.id == "open":
            if self._opens_for_writing(node, 1):
                yield from self._arguments_at(node, (0,))
        elif isinstance(node.func, ast.Attribute) and not dotted:
            yield from self._by_method(node, node.func)
        elif isinstance(node.func, ast.Call):
            raise _NotUnderstood  # what it calls is not known by any name

    def _by_method(self, node: ast.Call, func: ast.Attribute) -> Iterator[_Values]:
        if func.attr == "copy" and (node.args or node.keywords):
            raise _NotUnderstood
        if func.attr == "replace" and (
            len(node.args) + len(node.keywords) != 1 or isinstance(func.value, ast.Constant)
        ):
            return  # of a text, a date or a record
        if func.attr == "open" and not self._opens_for_writing(node, 0):
            return
        others = _METHODS.get(func.attr)
        if others is not None:
            yield self._values(func.value)
            yield from self._arguments_at(node, others)

    def _arguments_at(self, node: ast.Call, places: Iterable[int]) -> Iterator[_Values]:
        for at in places:
            is_plain = len(node.args) > at and not any(isinstance(one, ast.Starred) for one in node.args)
            yield self._values(node.args[at]) if is_plain else None
        if places and any(
            one.arg is None or one.arg in ("opener", "dir_fd", "src_dir_fd", "dst_dir_fd", "copy_function")
            for one in node.keywords
        ):
            raise _NotUnderstood

    def _opens_for_writing(self, node: ast.Call, place: int) -> bool:
        """Whether the mode may be another than reading."""
        if any(isinstance(one, ast.Starred) for one in node.args) or any(
            one.arg is None or one.arg == "opener" for one in node.keywords
        ):
            raise _NotUnderstood
        modes = [one.value for one in node.keywords if one.arg == "mode"] or node.args[place : place + 1]
        if not modes:
            return False
        values = self._values(modes[0])
        return values is None or any(set(one) & set("wax+") for one in values)

    def _absolute(self, values: _Values) -> Iterator[str]:
        if values is None:
            raise _NotUnderstood
        for value in values:
            path = absolute(value, self._folder)
            if path is None or path == "/" or value.startswith("~"):
                raise _NotUnderstood
            yield path

    def _values(self, node: ast.expr | None, depth: int = 0) -> _Values:  # noqa: PLR0911 - kinds of expressions
        if node is None or depth > _DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            is_short = isinstance(node.value, str) and len(node.value) <= _LONGEST_VALUE
            return frozenset({str(node.value)}) if is_short else None
        if isinstance(node, ast.Name):
            return self._named(node.id, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
            joins = _path if isinstance(node.op, ast.Div) else str.__add__
            return _each(joins, self._values(node.left, depth + 1), self._values(node.right, depth + 1))
        if isinstance(node, ast.JoinedStr):
            whole: _Values = frozenset({""})
            for one in node.values:
                is_bare = isinstance(one, ast.FormattedValue) and one.conversion == -1 and one.format_spec is None
                piece = one.value if isinstance(one, ast.FormattedValue) and is_bare else one
                inner = None if isinstance(one, ast.FormattedValue) and not is_bare else self._values(piece, depth + 1)
                whole = _each(str.__add__, whole, inner)
            return whole
        if isinstance(node, ast.IfExp):
            return _union([self._values(node.body, depth + 1), self._values(node.orelse, depth + 1)])
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            return _each(_parent, self._values(node.value, depth + 1), frozenset({""}))
        return self._result(node, depth) if isinstance(node, ast.Call) else None

    def _result(self, node: ast.Call, depth: int) -> _Values:
        dotted = self._dotted(node.func)
        args = [] if node.keywords else [self._values(one, depth + 1) for one in node.args]
        if node.keywords:
            return None
        if dotted in _PATHS or (dotted == "os.path.join" and args):
            joins = _path if dotted in _PATHS else posixpath.join
            whole: _Values = frozenset({""})
            for one in args or [frozenset({"."})]:
                whole = _each(joins, whole, one)
            return whole
        if dotted in ("os.getcwd", "pathlib.Path.cwd"):
            return frozenset({self._folder})
        is_str = isinstance(node.func, ast.Name) and node.func.id == "str" and "str" not in self._names
        if is_str or dotted in ("os.fspath", "os.path.abspath", "os.path.normpath", "os.path.realpath"):
            return args[0] if len(args) == 1 else None
        if dotted == "os.path.dirname" and len(args) == 1:
            return _each(_dirname, args[0], frozenset({""}))
        is_same = isinstance(node.func, ast.Attribute) and not dotted and node.func.attr in ("resolve", "absolute")
        return self._values(node.func.value, depth + 1) if is_same and isinstance(node.func, ast.Attribute) else None

    def _named(self, name: str, depth: int) -> _Values:
        if name == "__file__" and name not in self._names:
            return None if self._path is None else frozenset({self._path})
        if name not in self._known:
            self._known[name] = None  # what depends on itself is not known
            found = [self._values(one, depth + 1) for one in self._names.get(name, ())]
            found += [self._elements(one, depth + 1) for one in self._items.get(name, ())]
            self._known[name] = _union(found) if found else None
        return self._known[name]

    def _elements(self, node: ast.expr, depth: int) -> _Values:
        """What the elements of a list that is walked through may be."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return _union([self._values(one, depth) for one in node.elts])
        if isinstance(node, ast.Name) and not self._items.get(node.id) and depth < _DEEPEST:
            bound = self._names.get(node.id, [])
            is_walked = all(
                id(one) in self._walked
                for one in self._nodes
                if isinstance(one, ast.Name) and one.id == node.id and isinstance(one.ctx, ast.Load)
            )
            if bound and all(isinstance(one, ast.Tuple) or (is_walked and isinstance(one, ast.List)) for one in bound):
                return _union([self._elements(one, depth + 1) for one in bound if one is not None])
        return None


def _union(found: list[_Values]) -> _Values:
    if not found or any(one is None for one in found):
        return None
    whole = frozenset[str]().union(*(one for one in found if one is not None))
    return whole if len(whole) <= _MOST_VALUES else None


def _unchanging(value: ast.expr) -> ast.expr | None:
    """What a second name may be bound to as well, without a change by the one being a change of the other."""
    return None if isinstance(value, ast.List) else value


def _is_hidden(name: str) -> bool:
    return name.startswith("__") and name not in _DUNDERS


def _path(one: str, other: str) -> str:
    """As pathlib joins and writes them."""
    return str(PurePosixPath(one, other))


def _parent(one: str, _: str) -> str:
    return str(PurePosixPath(one).parent)


def _dirname(one: str, _: str) -> str:
    return posixpath.dirname(one)


def _each(joined: Callable[[str, str], str], one: _Values, other: _Values) -> _Values:
    if one is None or other is None or len(one) * len(other) > _MOST_VALUES:
        return None
    found = frozenset(joined(first, second) for first, second in product(one, other))
    return found if all(len(text) <= _LONGEST_VALUE for text in found) else None
