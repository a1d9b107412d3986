"""The paths that a message is about, and the work tree that its relative names start from.

Touched paths come first: from tool inputs, patch headers, results, patch parts, summaries and the message's recorded
edits (what a shell command did to files). They are taken as they are. Our own recall touches nothing, nor does its
answer mention anything. Paths that texts mention follow. We read them conservatively: a URL is not a path, a route like
``/todos`` is not one, and a bare name counts only if it is quoted as code. All are absolute, normalised by their text,
each once, at most MOST of them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from daemon import records
from daemon.errors import BadRecord
from daemon.model import FileEdit, Json, Message, Operation, Part, Session
from daemon.transcript import patch_text
from daemon.transcript.own_calls import is_own_call, shows_own_answer
from daemon.transcript.tool_calls import PATH_KEYS, absolute, valid_text, working_directory, worktree

MOST = 256
_MOST_TEXT = 65_536  # characters of one text that are looked through
_ROOTS = re.compile(r"/(?:home|Users|root|etc|usr|var|opt|tmp|srv|mnt|media|private|workspaces?|app|data|code)/")
_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root")
_QUOTED = re.compile(r"`([^`\n]{1,300})`|\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'")
_WORD = re.compile(r"[^\s\"'`<>()\[\]{}|,;*?=\\]+")
_PLACE = re.compile(r"(?::\d+){1,2}$|#L\d+(?:-L?\d+)?$")
_SUFFIX = re.compile(r"[\w@+-][\w.@+ -]*\.[A-Za-z][A-Za-z0-9]{0,9}|\.[a-z][\w.-]{2,30}")
_SEGMENTS = re.compile(r"/*[\w.@+ ~-][\w.@+ ~/-]*")
_CODE = re.compile(r"\s-|[=;|&]|: ")
"""A command, or a piece of code."""
_HOST = re.compile(
    r"(?:www\.|[\w-]+\.(?:com|org|net|io|dev|ai|co|de|eu|uk|edu|gov|me|sh|xyz|info)$|localhost|\d[\d.]*$)"
)
_STATES = frozenset({Operation.FOLDER, Operation.STATE, Operation.SNAPSHOT, Operation.STEP, Operation.RUN})
"""Operations that record a file's state, or only that something ran; all others may change or read a file."""
_PAIRS = frozenset({Operation.MOVE, Operation.COPY})


def paths(message: Message, session: Session | None, edits: Iterable[FileEdit] = ()) -> tuple[str, ...]:
    """Absolute paths, touched ones first, each group in order of appearance; `edits` are the message's."""
    ordered: dict[str, None] = {}
    base = working_directory(message, session)
    for path in chain(_touched(message, session, base), _edited(edits), _mentioned(message, base)):
        if path is not None and path != "/":
            ordered[path] = None
        if len(ordered) >= MOST:
            break
    return tuple(ordered)


# -- touched -----------------------------------------------------------------------------------------------------


def _touched(message: Message, session: Session | None, base: str) -> Iterator[str | None]:
    for part in message.parts:
        if part.type == "tool":
            yield from _of_call(part, base)
        elif part.type == "patch":
            for name in _list(part.data.get("files")):
                yield absolute(unquoted(records.text(name)), base)
        elif part.type == "file":
            url = records.text(part.data.get("url"))
            if url.startswith("file:///"):
                yield absolute(_percent_decoded(url[7:].split("?", 1)[0]), base)
    root = worktree(message, session)
    for diff in _list(records.table(message.data.get("summary")).get("diffs")):
        yield absolute(unquoted(records.text(records.table(diff).get("file"))), root)


def _edited(edits: Iterable[FileEdit]) -> Iterator[str | None]:
    for edit in edits:
        if edit.operation in _STATES:
            continue
        yield edit.path
        if edit.other and edit.operation in _PAIRS:
            yield edit.other
            if edit.into is not False:
                yield absolute(posixpath.basename(edit.path), edit.other)


def _of_call(part: Part, base: str) -> Iterator[str | None]:
    if is_own_call(part):
        return
    state = records.table(part.data.get("state"))
    call_input, metadata = records.table(state.get("input")), records.table(state.get("metadata"))
    for key in PATH_KEYS:
        yield absolute(records.text(call_input.get(key)), base)
    for file in patch_text.parse(records.text(call_input.get("patchText"))):
        yield absolute(file.path, base)
        yield absolute(file.move_to, base)
    entries: list[object] = [*_list(metadata.get("files")), metadata.get("filediff"), metadata]
    for entry in entries:
        for key in ("filePath", "movePath", "file", "filepath"):
            yield absolute(records.text(records.table(entry).get(key)), base)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def unquoted(name: str) -> str:
    """The plain form of a file name that git has quoted because it contains a tab, a quote or a backslash.

    OpenCode joins the quoted name to the folder as it stands (opencode-formats.md, Tools 2); a name that cannot be read
    so comes back empty.
    """
    at = name.find('"')
    if at < 0 or not name.endswith('"') or name[at - 1 : at] not in ("", "/") or len(name) < at + 2:
        return "" if "\n" in name else name
    escapes = {"t": "\t", "n": "\n", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
    raw = bytearray()
    for octal, letter, plain in re.findall(r"\\([0-7]{3})|\\(.)|([^\\])", name[at + 1 : -1], re.DOTALL):
        if octal:
            raw.append(int(octal, 8) & 0xFF)
        else:
            raw += (plain or escapes.get(letter, letter)).encode("utf-8", "replace")
    try:
        return name[:at] + raw.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _percent_decoded(text: str) -> str:
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode("utf-8", "replace"))
    return raw.decode("utf-8", "replace")


# -- mentioned ---------------------------------------------------------------------------------------------------


def _mentioned(message: Message, base: str) -> Iterator[str | None]:
    root = base.split("/")[1] if base.startswith("/") else None
    for text in _spoken(message):
        for match in _QUOTED.finditer(text):
            name = match[match.lastindex or 0]
            if not _CODE.search(name):
                yield _path_of(name.strip(), base, root, is_quoted=True)
        # Hardly a word has a slash, and only such a word is a path. No word goes over white space.
        slashed = " ".join([piece for piece in text.split() if "/" in piece]) if "/" in text else ""
        for word in _WORD.findall(slashed):
            if "/" in word:
                yield _path_of(word, base, root, is_quoted=False)


def _spoken(message: Message) -> Iterator[str]:
    """Texts in which paths are looked for; outputs last, since they may name a great many."""
    outputs = []
    for part in message.parts:
        if is_own_call(part):
            continue
        state: Json = records.table(part.data.get("state"))
        call_input = records.table(state.get("input"))
        texts = [part.data.get("text"), call_input.get("command"), call_input.get("prompt"), part.data.get("prompt")]
        yield from (valid_text(text[:_MOST_TEXT]) for text in texts if isinstance(text, str))
        if not shows_own_answer(part):
            outputs.append(records.text(state.get("output"))[:_MOST_TEXT])
    yield from (valid_text(text) for text in outputs)


def _path_of(word: str, base: str, root: str | None, *, is_quoted: bool) -> str | None:
    """The path that a word names, or None if it need not be a path. `root` is the first folder of an absolute base."""
    if "://" in word or len(word) > 512 or word.startswith(("-", "//", "@")):
        return None
    word = _PLACE.sub("", word.rstrip(".,:;!?")).rstrip(":")
    if word.startswith("~/"):
        home = _HOME.match(base)
        return absolute(home[0] + word[1:], base) if home else None
    if not _SEGMENTS.fullmatch(word):
        return None
    segments = [segment for segment in word.split("/") if segment]
    if word.startswith("/"):
        return absolute(word, base) if len(segments) > 1 and (segments[0] == root or _ROOTS.match(word)) else None
    is_file = _SUFFIX.fullmatch(segments[-1]) is not None
    if not is_file or _HOST.match(segments[0]) or (len(segments) == 1 and not is_quoted):
        return None
    return absolute(word, base)


# -- work trees --------------------------------------------------------------------------------------------------


def work_tree(
    message: Message, session: Session | None, *, known_root: str = "", names: Sequence[str] = ()
) -> str | None:
    """The absolute folder that `names` are relative to; None outside git, and if it is unknown.

    The message's own `path.root` decides (a project's record mixes up clones: opencode-formats.md, Tools 1). A user's
    message has none: then `known_root`, or the session record's `path` (1.18), or what the names themselves allow.

    `known_root` comes from the caller, such as the `path.root` of another message of the turn. Names recorded in a
    session begin with the session's folder as seen from the work tree. If they cannot, the session's folder is the
    work tree; if they might, the work tree is unknown.
    """
    root = records.text(records.table(message.data.get("path")).get("root")) or known_root
    if root:
        return _below_root(root)
    return None if session is None else session_tree(session, names)


def session_tree(session: Session, names: Sequence[str] = ()) -> str | None:
    """As work_tree, from the session's record alone."""
    directory = _below_root(session.directory)
    if directory is None:
        return None
    try:
        relative = records.load_object(session.raw).get("path")
    except BadRecord:
        relative = None
    if isinstance(relative, str):
        relative = relative.strip("/")
        if relative in ("", "."):
            return directory
        return _below_root(directory.removesuffix(f"/{relative}")) if directory.endswith(f"/{relative}") else None
    folders = directory.strip("/").split("/")
    beneath = ("/".join(folders[-count:]) + "/" for count in range(1, len(folders) + 1))
    if not names or any(all(name.startswith(folder) for name in names) for folder in beneath):
        return None
    return directory


def _below_root(path: str) -> str | None:
    """`path` made absolute; None for "/" (which OpenCode records outside git) and for a text that is not a path."""
    folder = absolute(path, "")
    return None if folder == "/" else folder
