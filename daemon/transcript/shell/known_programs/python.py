"""Which files a Python program may have written, by its syntax tree: for programs that open constant paths.

Only a program of which every part is known not to write, or to write to a path that its text tells, is understood. Its
imports are modules of the standard library that bring no other way to a file; whatever hands one of those ways on
(``map(os.remove, names)``) ends it. What its paths may be, `python_values` tells.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterable, Iterator

from daemon.model import Operation
from daemon.transcript.shell.known_programs.python_values import MODULES, NotUnderstood, Strings, Values
from daemon.transcript.shell.names import words
from daemon.transcript.shell.state import Effect, is_system
from daemon.transcript.tool_calls import absolute

_NAME = "<recorded program>"
warnings.filterwarnings("ignore", category=SyntaxWarning, module=_NAME)
warnings.filterwarnings("ignore", category=DeprecationWarning, module=_NAME)

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
_MOST_NODES = 20_000
_LONGEST = 100_000


def read(text: str, folder: str, path: str | None) -> list[Effect] | None:
    """What a program of this text may have changed, run in `folder`; None where that is not understood."""
    if len(text) > _LONGEST or "\0" in text:
        return None
    try:
        tree = ast.parse(text, _NAME)
        paths = _Reader(tree, folder, path).paths()
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, NotUnderstood):
        return None
    return [Effect(Operation.UNCLEAR, path_written) for path_written in paths if not is_system(path_written)]


class _Reader:
    """Reads one program; anything that is not known to be harmless ends the reading."""

    def __init__(self, tree: ast.Module, folder: str, path: str | None) -> None:
        self._nodes = list(ast.walk(tree))
        if len(self._nodes) > _MOST_NODES:
            raise NotUnderstood
        self._folder = folder
        self._called = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}
        self._inner = {id(node.value) for node in self._nodes if isinstance(node, ast.Attribute)}
        self._values = Values(self._nodes, folder, path)
        for dotted in self._values.taken_from_modules:
            self._check_member(dotted, is_called=True, is_inner=True)
        if self._values.bound & _BUILTINS:
            raise NotUnderstood

    def paths(self) -> list[str]:
        """Absolute paths that it may have changed, in the order of the text."""
        paths: dict[str, None] = {}
        for node in self._nodes:
            if isinstance(node, ast.Call):
                for values in self._written(node):
                    paths.update(dict.fromkeys(self._absolute(values)))
            elif isinstance(node, ast.Attribute):
                self._check_attribute(node)
            elif isinstance(node, ast.Name):
                self._check_name(node)
        return list(paths)

    def _check_name(self, node: ast.Name) -> None:
        is_called = id(node) in self._called
        if (node.id in _BUILTINS and not (node.id == "open" and is_called)) or _is_hidden(node.id):
            raise NotUnderstood
        dotted = self._values.imported.get(node.id, "")
        if dotted and id(node) not in self._inner:
            self._check_member(dotted, is_called=is_called)

    def _check_attribute(self, node: ast.Attribute) -> None:
        dotted, is_called = self._values.dotted(node), id(node) in self._called
        if node.attr in _NEVER or _is_hidden(node.attr):
            raise NotUnderstood
        if node.attr in _METHODS and (dotted not in _TARGETS if dotted else not is_called):
            raise NotUnderstood  # as in map(Path.unlink, names)
        if dotted:
            if not isinstance(node.ctx, ast.Load):
                raise NotUnderstood
            self._check_member(dotted, is_called=is_called, is_inner=id(node) in self._inner)

    def _check_member(self, dotted: str, *, is_called: bool, is_inner: bool = False) -> None:
        """What is taken out of a module: nothing that writes, but by a call that is looked at, and no other module."""
        module, _, name = dotted.rpartition(".")
        if dotted in MODULES:
            is_plain = is_inner
        elif dotted in _TARGETS:
            is_plain = is_called
        else:
            is_plain = name in _HARMLESS.get(module, (name,)) and name not in sys.stdlib_module_names
        if not is_plain or name in _NEVER or (name.startswith("_") and dotted not in MODULES):
            raise NotUnderstood

    def _written(self, node: ast.Call) -> Iterator[Strings]:
        """What the paths that a call changes may be."""
        dotted = self._values.dotted(node.func)
        if dotted in _TARGETS:
            yield from self._arguments_at(node, _TARGETS[dotted])
        elif isinstance(node.func, ast.Name) and node.func.id == "open":
            if self._opens_for_writing(node, 1):
                yield from self._arguments_at(node, (0,))
        elif isinstance(node.func, ast.Attribute) and not dotted:
            yield from self._by_method(node, node.func)
        elif isinstance(node.func, ast.Call):
            raise NotUnderstood  # what it calls is not known by any name

    def _by_method(self, node: ast.Call, func: ast.Attribute) -> Iterator[Strings]:
        if func.attr == "copy" and (node.args or node.keywords):
            raise NotUnderstood
        if func.attr == "replace" and (
            len(node.args) + len(node.keywords) != 1 or isinstance(func.value, ast.Constant)
        ):
            return  # of a text, a date or a record
        if func.attr == "open" and not self._opens_for_writing(node, 0):
            return
        places = _METHODS.get(func.attr)
        if places is not None:
            yield self._values.of(func.value)
            yield from self._arguments_at(node, places)

    def _arguments_at(self, node: ast.Call, places: Iterable[int]) -> Iterator[Strings]:
        for at in places:
            is_plain = len(node.args) > at and not any(isinstance(argument, ast.Starred) for argument in node.args)
            yield self._values.of(node.args[at]) if is_plain else None
        if places and any(
            argument.arg is None or argument.arg in ("opener", "dir_fd", "src_dir_fd", "dst_dir_fd", "copy_function")
            for argument in node.keywords
        ):
            raise NotUnderstood

    def _opens_for_writing(self, node: ast.Call, place: int) -> bool:
        """Whether the mode may be another than reading."""
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            argument.arg is None or argument.arg == "opener" for argument in node.keywords
        ):
            raise NotUnderstood
        modes = [argument.value for argument in node.keywords if argument.arg == "mode"] or node.args[place : place + 1]
        if not modes:
            return False
        values = self._values.of(modes[0])
        return values is None or any(set(argument) & set("wax+") for argument in values)

    def _absolute(self, values: Strings) -> Iterator[str]:
        if values is None:
            raise NotUnderstood
        for value in values:
            path = absolute(value, self._folder)
            if path is None or path == "/" or value.startswith("~"):
                raise NotUnderstood
            yield path


def _is_hidden(name: str) -> bool:
    return name.startswith("__") and name not in _DUNDERS
