"""Replays programs that ran, by their text, if that text is known at the time.

If we understand the text, its effects take place one by one, as if they were in the command line. Otherwise a program
without words for writing changes nothing (`may_write`), and any other may have changed every file in its folder. Only
effects beneath the path of the event count, so that the replay of one file and the replay of all files agree.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from daemon.files import trees
from daemon.files.replay.track import Track, started
from daemon.files.replay.tracks import Tracks
from daemon.model import FileEdit, Launch, Operation
from daemon.redact import redact
from daemon.transcript import shell
from daemon.transcript.shell import in_scope
from daemon.transcript.shell.known_programs import packages
from daemon.transcript.shell.state import Effect, is_system

_DEEPEST = 4
"""The depth to which we read programs that start one another."""
_MOST_READ = 64
"""Texts that are read for one command."""
_ELSEWHERE = re.compile(
    r"__file__|\$\{?0\b|BASH_SOURCE|__dirname|import\.meta|__DIR__|argv\[0\]|\$PROGRAM_NAME|MAKEFILE_LIST"
    r"|(?<![.\w])\.\.(?![.\w])|\bpardir\b|[Pp]arents?\b|[Dd]irname\b|toplevel|top_level"
    r"|\bpwd\b|PWD\b|CURDIR\b|[Gg]et_?[Cc]wd\b|\bcwd\b|(?<!bin/)\b(?:env|ENV)\b|environ|[Gg]et_?[Ee]nv|stdin\b|\binput\("
)
"""How programs reach a folder other than the one they were started in: their own, one above, one from outside."""
_TAKES_ANY = re.compile(r"\$[@*#]|\$\{[@*#!\d][^}]|\bshift\b|\bset +--|\bgetopts\b")
"""How a shell script uses its arguments without naming one."""
_COMMANDING = frozenset({"sh", "bash", "source", "make", "package"})
_SHELL_SCRIPT = re.compile(r"#![^\n]*\b(?:ba|da|z|k)?sh\b")
_MAKEFILES = ("GNUmakefile", "makefile")
_WRITES = re.compile(
    r"""
    open\s*\([^)\n]*,\s*(?:mode\s*=\s*)?[brut]*['"][^'"\n]*[wax+] | ['"][rbt]*[wax]\+?[bt]*['"]\s*\)
    | write | Write | dump | save | append(?:_?[Ff]ile)? | truncate | unlink | remove | rename | replace\s*\(
    | rmtree | rmdir | mkdir | makedirs | move\s*\( | copy | touch | symlink | shutil | to_csv | to_json
    | subprocess | child_process | os\.system | popen | Popen | spawn | exec | eval | sqlite
    | \.open\s*\( | open\s*\(\s*(?:my|local|\$|[A-Z]) | file\s*= | ['"]\s*[+]?>>?\s*['"] | >\s*["']
    | File\.open | FileUtils | createWriteStream | \bfs\b | put_contents | fopen
    | ^[ \t]*(?!(?:if|elif|while|return|assert|and|or|not|yield|case)\b)
      [\w./-]+(?:[ \t][^()=<>\n]*)?[ \t]*\d?>{1,2}[ \t]*\S
    | \b(?:tee|sed|rm|mv|cp|dd|git|make|npm|curl|wget|tar|unzip)\b
    """,
    re.VERBOSE | re.MULTILINE,
)
_DRAWS_IN = re.compile(r"[A-Za-z_][\w-]*")
_MOST_TEXT = 1 << 20
_MOST_FILES = 500


class Launches:
    """Replays RUN events; `later` are the future changes of each path.

    `replay_event` replays one effect of a program; `doubt` records that it may have changed anything in a folder.
    """

    def __init__(
        self,
        tracks: Tracks,
        later: Mapping[str, Iterable[FileEdit]],
        replay_event: Callable[[FileEdit], None],
        doubt: Callable[[str, FileEdit], None],
    ) -> None:
        self._tracks = tracks
        self._later = later
        self._replay_event = replay_event
        self._doubt = doubt
        self._depth = self._read = 0
        self._names_its_files: tuple[str, str | None] = "", None

    def run(self, edit: FileEdit) -> None:
        """A program ran."""
        if not self._depth:
            self._read = 0
        folder = edit.path if edit.launch is None else posixpath.join(edit.path, edit.launch.folder).rstrip("/")
        edit = self._with_first_makefile(edit)
        script = None if edit.other is None else self._tracks.known(edit.other)
        text = edit.content if edit.content is not None else _known_text(script)
        is_harmless = not may_write(text, lambda name: self._beside(name, edit, folder, script))
        program = self._program(edit, folder, script, text)
        is_harmless = is_harmless and not _is_read_only_whole(edit, text)
        effects = None if program is None else shell.read_program(program)
        self._names_its_files = "", None
        if program is None or effects is None:
            is_harmless = is_harmless or (text is None and self._is_trusted(edit))
            if not is_harmless:
                is_elsewhere = _is_of_package(edit) or _leads_elsewhere(text, folder, edit)
                self._doubt(edit.path if is_elsewhere else folder, edit)
            return
        is_read_on = shell.rereads_itself(program)
        is_sure = edit.content is not None or (script is not None and script.is_certain)
        is_sure = self._replay(edit, folder, effects, script if is_read_on else None, is_sure=is_sure)
        if is_sure and not _is_of_package(edit) and not (is_read_on and _TAKES_ANY.search(program.text)):
            self._names_its_files = edit.part_id, edit.other

    def explains(self, edit: FileEdit) -> bool:
        """Whether an UNCLEAR event only repeats an argument of the last program, whose text we understand."""
        return edit.other is not None and self._names_its_files == (edit.part_id, edit.other)

    def _beside(self, name: str, edit: FileEdit, folder: str, script: Track | None) -> list[str | None]:
        """The texts of the files that a program may import or source under a name."""
        places = [folder, *([] if edit.other is None else [posixpath.dirname(edit.other)])]
        return [
            _known_text(track)
            for track in self._tracks.called(name)
            if track is not script and track.exists and any(trees.is_beneath(track.path, place) for place in places)
        ]

    def _program(self, edit: FileEdit, folder: str, script: Track | None, text: str | None) -> shell.Program | None:
        """The program, if everything that its text depends on is certain; None if not, or beyond the limits."""
        self._read += 1
        launch = edit.launch
        if launch is None or text is None or self._depth >= _DEEPEST or self._read > _MOST_READ:
            return None
        if edit.content is None and (script is None or not self._is_settled(script, edit)):
            return None
        place = posixpath.dirname(edit.other) if edit.other else folder
        program = shell.Program(text, launch, folder, edit.other if edit.content is None else None, edit.path)
        if shell.is_python(program) and any(
            self._is_there(f"{place}/{name}.py") or self._tracks.is_folder(f"{place}/{name}")
            for name in sys.stdlib_module_names
        ):
            return None  # it may shadow a module of the standard library
        return program

    def _with_first_makefile(self, edit: FileEdit) -> FileEdit:
        """The event with the makefile that make reads first."""
        if edit.other is None or posixpath.basename(edit.other) != "Makefile":
            return edit
        beside = (f"{posixpath.dirname(edit.other)}/{name}" for name in _MAKEFILES)
        return replace(edit, other=next((path for path in beside if self._is_there(path)), edit.other))

    def _is_trusted(self, edit: FileEdit) -> bool:
        """Whether it runs the tests or installs the packages of an unknown package.json."""
        folder = posixpath.dirname(edit.other or "")
        while trees.is_beneath(folder, edit.path):
            if self._is_there(f"{folder}/package.json"):
                return False
            if folder == edit.path:
                break
            folder = posixpath.dirname(folder)
        return edit.launch is not None and packages.is_trusted(edit.launch)

    def _is_there(self, path: str) -> bool:
        track = self._tracks.known(path)
        return track is not None and track.exists

    def _is_settled(self, track: Track, edit: FileEdit) -> bool:
        """Whether no concurrent event, and none of unknown time, can have changed the file."""
        if track.now is None or track.now.is_fleeting or track.overlaps(edit):
            return False
        coming = self._later.get(track.path, ())
        return not any(later.part_id != edit.part_id and started(later) < edit.time for later in coming)

    def _replay(
        self, edit: FileEdit, folder: str, effects: Iterable[Effect], script: Track | None, *, is_sure: bool
    ) -> bool:
        """Replay all effects in order: as doubts unless `is_sure`, and after the script itself may have changed.

        Returns whether all of them were sure.
        """
        before = None if script is None else script.now
        is_intact = True
        self._depth += 1
        try:
            for effect in effects:
                if self._read > _MOST_READ:
                    self._doubt(edit.path, edit)
                    return False
                for step in _steps(edit, effect, is_sure=is_sure):
                    if step.operation is Operation.RUN and step.launch is None:
                        self._doubt(step.path, step)
                    else:
                        self._replay_event(step)
                if script is not None and is_intact and script.now is not before:
                    is_sure = is_intact = False
                    self._doubt(folder, edit)
        finally:
            self._depth -= 1
        return is_sure


def _is_of_package(edit: FileEdit) -> bool:
    return edit.other is not None and posixpath.basename(edit.other) == "package.json"


def _leads_elsewhere(text: str | None, folder: str, edit: FileEdit) -> bool:
    """Whether a program may have gone to another folder than the one it was started in, by its text or arguments.

    Of a file whose text is not known: whether it lies in another one.
    """
    if text is None and edit.other is not None:
        return not trees.is_beneath(edit.other, folder)
    if text is not None and (_ELSEWHERE.search(text) is not None or f"{edit.path}/" in text):
        return True
    above = posixpath.dirname(folder)
    return edit.launch is not None and any(
        argument is None or trees.is_beneath(above, posixpath.normpath(posixpath.join(folder, argument)))
        for argument in edit.launch.arguments[1:]
    )


def _is_read_only_whole(edit: FileEdit, text: str | None) -> bool:
    """Whether its words cannot prove it harmless, because each of its commands could be any program."""
    language = "" if edit.launch is None else edit.launch.language
    name = posixpath.basename(edit.other or "")
    return (
        language in _COMMANDING
        or name in ("Makefile", "package.json", *_MAKEFILES)
        or name.endswith((".sh", ".bash"))
        or (text is not None and _SHELL_SCRIPT.match(text) is not None)
    )


def _known_text(track: Track | None) -> str | None:
    """The text of a file, if it is certain except for formatters, which do not change a program's effects."""
    is_known = track is not None and (track.is_certain or track.is_unconfirmed)
    return track.text if track is not None and is_known and track.exists else None


def _steps(edit: FileEdit, effect: Effect, *, is_sure: bool) -> list[FileEdit]:
    """The events for one effect of a program, those beneath the event's own path."""
    if effect.operation is Operation.RUN:
        return _launched(edit, effect)
    named = [path for path in (effect.path, effect.other) if path is not None]
    paths = [path for path in named if not is_system(path) and redact(path) == path]
    is_inside = paths == named and all(trees.is_beneath(path, edit.path) for path in paths)
    plain = replace(edit, content=None, other=None, launch=None)
    if is_sure and is_inside and effect.operation is not Operation.UNCLEAR:
        event = replace(
            plain,
            path=effect.path,
            operation=effect.operation,
            content=effect.content,
            other=effect.other,
            into=effect.into,
            recursive=effect.recursive,
        )
        return [event]
    if effect.operation is Operation.UNCLEAR:
        paths = paths[: named.index(effect.path) + 1] if effect.path in paths else []
    clipped = (_clipped(path, edit.path) for path in paths)
    return [replace(plain, path=path, operation=Operation.UNCLEAR) for path in clipped if path is not None]


def _launched(edit: FileEdit, effect: Effect) -> list[FileEdit]:
    """A program that this one started."""
    folder = _clipped(effect.path, edit.path)
    if folder is None:
        return []
    started_run = replace(edit, path=folder, content=effect.content, other=effect.other, launch=None)
    if effect.content is None and effect.other is None and effect.launch is None:
        return [started_run]
    launch = effect.launch or Launch("")
    scoped = in_scope(replace(effect, launch=launch), edit.path)
    return [replace(started_run, path=scoped.path, launch=scoped.launch)]


def _clipped(path: str, scope: str) -> str | None:
    """The part of `path` that lies beneath `scope`; None if nothing does."""
    if trees.is_beneath(path, scope):
        return path
    return scope if trees.is_beneath(scope, path) else None


def may_write(text: str | None, beside: Callable[[str], Iterable[str | None]]) -> bool:
    """Whether a program of this text may have written files; an unknown one (None) may.

    The words are those of the usual languages, rather too many than too few.

    `beside`: the texts of the known files that a name may mean, with the same stem, in the folder it ran in.
    """
    waiting: list[str | None] = [text]
    visited: set[str] = set()
    looked = 0
    while waiting:
        now = waiting.pop()
        looked += 1
        if now is None or len(now) > _MOST_TEXT or looked > _MOST_FILES or _WRITES.search(now):
            return True
        names = set(_DRAWS_IN.findall(now)) - visited
        visited |= names
        for name in sorted(names):
            waiting += beside(name)
    return False
