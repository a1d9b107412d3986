"""Decides whether OpenCode may have run a formatter on a file after one of its tools changed it.

OpenCode runs the formatters for a file's extension before the call of `write`, `edit` or `apply_patch` ends, and
records nothing of it. These are facts of its versions 1.1.65, 1.14.34, 1.15.13 and 1.18.33:

* Formatters are chosen by extension alone, as it is written (`.R` is not `.r`). Which of them then run depends on
  installed commands and on files of the project (`package.json`, `biome.json`, `.clang-format`, ...), of which no
  record tells. So a built-in formatter may have run wherever the extension fits.
* Up to 1.3 they run unless the configuration says no. Since 1.14.34 at the latest they run only if `formatter` in the
  configuration is `true` or a table. A table adds to the built-in ones, with extensions of its own.
* A `write` or a patch records the text before the formatter. An `edit` records the text or diff after it, unless its
old
  text was empty.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator

from daemon.archive import Archive
from daemon.files.history import FileHistory, Revision
from daemon.files.trees import is_beneath
from daemon.model import FileEdit, Operation
from daemon.opencode import configuration
from daemon.opencode.configuration import ANY, UNKNOWN, Settings
from daemon.transcript.tool_calls import release

AS_WRITTEN = "as written; a formatter may have run"
FORMATTED = "the diff that was recorded with it shows other lines: a formatter ran after it"
TOOLS = frozenset({"write", "edit", "multiedit", "patch", "apply_patch"})
"""The tools after which OpenCode formats."""
_OPT_IN = (1, 14, 34)
_WITHOUT_LATER = (1, 1, 65)
"""The last version known to lack the formatters for `_LATER`."""
_WEB = ".js .jsx .mjs .cjs .ts .tsx .mts .cts .html .htm .css .scss .sass .less .vue .svelte .json .jsonc"
_TEXT = ".yaml .yml .toml .xml .md .mdx .graphql .gql .tex"
_NATIVE = ".go .zig .zon .c .cc .cpp .cxx .c++ .h .hh .hpp .hxx .h++ .ino .C .H .kt .kts .dart .ml .mli .rs .hs .gleam"
_SCRIPTS = ".py .pyi .R .rb .rake .gemspec .ru .erb .ex .exs .eex .heex .leex .neex .sface .sh .bash .php"
_SYSTEMS = ".tf .tfvars .nix"
_BUILT_IN = frozenset(f"{_WEB} {_TEXT} {_NATIVE} {_SCRIPTS} {_SYSTEMS}".split())
_LATER = frozenset({".clj", ".cljs", ".cljc", ".edn", ".d"})
_CHANGES = frozenset({Operation.WRITE, Operation.EDIT, Operation.PATCH})
_NONE = Settings()


def may_run(edit: FileEdit, settings: Settings = _NONE) -> bool:
    """Whether a formatter may have run after this change, by the known configuration."""
    if edit.tool not in TOOLS or edit.operation not in _CHANGES:
        return False
    extension = _extension(edit.path)
    if settings.extensions & {extension, ANY}:
        return True
    version = release(edit.version)
    is_later = extension in _LATER and (version is None or version > _WITHOUT_LATER)
    return (extension in _BUILT_IN or is_later) and (settings.is_on or version is None or version < _OPT_IN)


def shows_it(edit: FileEdit) -> bool:
    """Whether the recorded text of a change is the one after the formatter."""
    return edit.operation is Operation.EDIT and edit.old != ""


def _extension(path: str) -> str:
    """The extension as in Node: a name whose only dot is its first character has none."""
    name = posixpath.basename(path)
    return name[name.rindex(".") :] if "." in name[1:] else ""


class FormatterSettings:
    """The formatters in the configurations of the replayed sessions; one per replay.

    OpenCode reads its configuration when it starts, so we do not know which text of it applied to a call: a formatter
    that any of them enables may have run in all sessions of that folder. A configuration that is not recorded, and was
    gone when the session was archived, stays unknown.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._aliases = sorted(archive.files.aliases().items())
        self._directories: dict[str, str] = {}
        self._settings: dict[str, Settings] = {}

    def places(self, events: Iterable[FileEdit]) -> list[str]:
        """The paths of the configurations that apply to `events`, sorted."""
        undecided = (edit for edit in events if may_run(edit, UNKNOWN) and not may_run(edit))
        directories = {self._directory(session_id) for session_id in {edit.session_id for edit in undecided}}
        return sorted({place for directory in directories for place in configuration.places(directory)})

    def learn(self, history: Callable[[str], FileHistory]) -> bool:
        """Read the configurations from their histories; returns whether they add anything."""
        before = dict(self._settings)
        for directory in set(self._directories.values()):
            combined = self._settings.get(directory, Settings())
            for place in configuration.places(directory):
                for settings in _settings_in(history(place).revisions):
                    combined |= settings
            self._settings[directory] = combined
        return any(settings != before.get(place, Settings()) for place, settings in self._settings.items())

    def may_run(self, edit: FileEdit) -> bool:
        """As the function `may_run`, with the learnt configurations."""
        return may_run(edit, self._settings.get(self._directories.get(edit.session_id, ""), Settings()))

    def _directory(self, session_id: str) -> str:
        if session_id not in self._directories:
            session = self._archive.session(session_id)
            directory = "" if session is None else session.directory.rstrip("/")
            noted = configuration.from_json(self._archive.note(f"formatters {directory}"))
            for old, new in self._aliases:
                if is_beneath(directory, old):
                    directory = new + directory[len(old) :]
            self._directories[session_id] = directory
            self._settings[directory] = self._settings.get(directory, Settings()) | noted
        return self._directories[session_id]


def _settings_in(revisions: Iterable[Revision]) -> Iterator[Settings]:
    """The settings in each text of a configuration; UNKNOWN for a text that is not known."""
    for revision in revisions:
        if revision.content is not None:
            yield configuration.settings_in(revision.content.decode("utf-8", "replace"))
        elif not revision.deleted and revision.operation is not Operation.UNCLEAR:
            yield UNKNOWN
