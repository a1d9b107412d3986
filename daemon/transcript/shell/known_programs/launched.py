"""Which commands run a program whose text could write any file, and where that text is.

Interpreters, scripts, build tools and package scripts do; test runners, linters that only look and version questions
are taken not to. A formatter that rewrites what it is given is no run: `possible_writes` names what it may have
changed. What is in none of the tables is an unknown program (`is_known`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from daemon.transcript.shell import known_programs
from daemon.transcript.shell.known_programs import PYTHON, Program, makefile, packages, possible_writes, unwrapped
from daemon.transcript.shell.names import READERS, WRITING, words
from daemon.transcript.shell.state import Place
from daemon.transcript.shell.words import Field

_LONGEST = 1 << 20
_STARTERS = words("make npm yarn pnpm npx deno bun")
_FILTERS = words(
    "tr jq nl paste join comm column fold fmt expr bc rev tac base64 cksum sum shasum b2sum sha512sum kill wait "
    "hostname nproc uptime getconf tput clear pgrep ps lsof yes shuf factor numfmt pr expand unexpand look mktemp git "
    "awk find xargs parallel : [["
)
_NOT_HERE = words("tree less fd env tar unzip cpio 7z patch")
"""Readers and others with options that write, of which the tables do not know."""
_KNOWN = (
    frozenset[str]().union(
        READERS,
        WRITING,
        _FILTERS,
        possible_writes.KNOWN,
        packages.MANAGERS,
        known_programs.DIALECTS,
        known_programs.RUNNING,
        known_programs.RUNNING_UNLESS,
        known_programs.TESTING,
        known_programs.LOOKING,
        words("make gmake npx bunx pnpx uvx"),
    )
    - _NOT_HERE
)


@dataclass(frozen=True, slots=True)
class Launched:
    """A program's text, or its file; neither if unknown. The other fields are as in model.Launch."""

    content: str | None = None
    path: str | None = None
    language: str = ""
    arguments: tuple[str | None, ...] = ()
    strict: bool = False
    is_piped: bool = False


@dataclass(frozen=True, slots=True)
class Input:
    """Standard input of a command: its text or its file, if known."""

    text: str | None = None
    source: str | None = None


_TOOL_FOLDER = re.compile(
    r"(?:^|/)(?:node_modules/\.bin|\.?v?env[\w.-]*/(?:bin|Scripts)|vendor/bin)/[^/]+$"
    r"|^/(?:usr|bin|sbin|opt|snap|nix|Library|Applications)/|/\.[\w.-]+/(?:.*/)?(?:bin|shims)/[^/]+$"
)
_SOURCED = re.compile(
    r"(?:.*/)?(?:activate(?:\.\w+)?|\.(?:bash|zsh)(?:rc|_profile|env)|\.profile|nvm\.sh|\.?env(?:\.(?!(?:ba|z)?sh$)[\w.-]+)?)"
)
_MAY_RUN = re.compile(
    r"(?:^|[\s;&|(`/])(?:python[\d.]*|node|ruby|perl|php|deno|bun|npx|npm|yarn|pnpm|make|just|cargo|go|bash|sh|zsh|source|tsx|"
    r"ts-node|uv|poetry)(?=\s|$)|(?:^|[\s;&|(`])\.{1,2}/\S"
)


def may_run(command: str) -> bool:
    """Whether a command that we cannot parse contains anything that runs a program."""
    return _MAY_RUN.search(command) is not None


def launched(fields: list[Field], place: Place, stdin: Input) -> Launched | None:
    """The program that this command runs; None if it runs none that could write a file."""
    program = unwrapped(fields)
    if program is None:
        return None
    if not program.field.exact:
        return Launched()
    program_run = _launched(program, place, stdin)
    if program_run is not None and program_run.content is not None and len(program_run.content) > _LONGEST:
        return Launched()
    return program_run


def _launched(  # noqa: PLR0911 - a table of kinds
    program: Program, place: Place, stdin: Input
) -> Launched | None:
    name, text = program.name, program.field.text
    if "/" in text and not _TOOL_FOLDER.search(text):
        is_tool = name in ("gradlew", "mvnw") or (text.startswith("bin/") and name in known_programs.RUNNING_UNLESS)
        if not is_tool:
            arguments = (text, *_texts(program.arguments))
            return Launched(path=place.exact(program.field), language="#!", arguments=arguments)
    if PYTHON.fullmatch(name):
        return _python(list(program.arguments), place, stdin)
    if name in _READERS:
        return _READERS[name](program, place, stdin)
    if name in known_programs.DIALECTS:
        return _interpreted(known_programs.DIALECTS[name], list(program.arguments), place, stdin)
    if name in packages.SCRIPTED and (script := packages.script_of(name, program.arguments)):
        return _packaged(program, script, place)
    if name in known_programs.RUNNING or name in known_programs.RUNNING_UNLESS:
        return _tool(name, [field.text for field in program.arguments])
    if "/" not in text and known_programs.SCRIPT_NAME.fullmatch(text) and not program.is_fetched:
        return Launched(path=place.exact(program.field))
    return _unlisted(program)


def _unlisted(program: Program) -> Launched | None:
    """A program outside the tables: unknown ones only if a package runner fetched them, or a test runner updates."""
    name, texts = program.name, [field.text for field in program.arguments]
    if name in known_programs.TESTING:
        return Launched() if packages.updates_snapshots(texts) else None
    is_known = name in known_programs.LOOKING or name in READERS or possible_writes.is_formatter(name)
    if not program.is_fetched or is_known or (texts and set(texts) <= known_programs.ASKING):
        return None
    return Launched()


def _python(arguments: list[Field], place: Place, stdin: Input) -> Launched | None:
    for at, field in enumerate(arguments):
        if not field.text.startswith("-") or field.text == "-" or known_programs.PYTHON_TEXT.fullmatch(field.text):
            break
        module = known_programs.PYTHON_MODULE.fullmatch(field.text)
        if module and field.exact:
            operands = arguments[at + 1 :]
            name = Field(module[1]) if module[1] else operands.pop(0) if operands else Field("", exact=False)
            return _module(name, operands, place, stdin)
    return _interpreted(known_programs.PYTHON_DIALECT, arguments, place, stdin)


def _module(name: Field, arguments: list[Field], place: Place, stdin: Input) -> Launched | None:
    if not name.exact:
        return Launched()
    if name.text == "coverage":
        return _coverage(arguments, place, stdin)
    if name.text in known_programs.HARMLESS_MODULES or possible_writes.is_formatter(name.text):
        return None
    return Launched()


def _coverage(arguments: list[Field], place: Place, stdin: Input) -> Launched | None:
    if [field.text for field in arguments[:1]] != ["run"]:
        return None
    return _python([field for field in arguments[1:] if not field.text.startswith("--")], place, stdin)


def _interpreted(  # noqa: PLR0911 - one way out for every kind of argument
    dialect: known_programs.Dialect, arguments: list[Field], place: Place, stdin: Input
) -> Launched | None:
    """The program of an interpreter: a text among its options, the first operand, or its standard input."""
    remaining = arguments[::-1]
    language, strict = dialect.language, False
    while remaining:
        field = remaining.pop()
        if not field.exact and not field.text.startswith("-"):
            return Launched()
        if field.text in dialect.harmless or (field.text == "-v" and not remaining):
            return None
        inline_text = dialect.text.fullmatch(field.text)
        if inline_text:
            inline = (
                Field(inline_text[1], field.exact)
                if inline_text[1]
                else next(iter(remaining[-1:]), Field("", exact=False))
            )
            return _inline(inline, language, _texts(remaining[::-1] if inline_text[1] else remaining[-2::-1]))
        if field.text in ("-", "-s"):
            break
        if field.text in dialect.values:
            if field.text == "-jar":
                return Launched()
            language = ""
            remaining = remaining[:-1]
        elif field.text == "--" and remaining:
            return Launched(path=place.exact(remaining[-1]))
        elif not field.text.startswith(("-", "+")):
            return Launched(None, place.exact(field), language, _texts([field, *remaining[::-1]]), strict)
        else:
            language = language if dialect.plain.fullmatch(field.text) else ""
            strict = field.text[0] == "-" if "e" in field.text else strict
    source = stdin.source if stdin.text is None else None
    return Launched(stdin.text, source, language, (None, *_texts(remaining[::-1])), strict, is_piped=True)


def _inline(text: Field, language: str, given: tuple[str | None, ...]) -> Launched:
    named = given or ("-c",) if language in ("sh", "bash") else ("-c", *given)
    return Launched(text.text, None, language, named) if text.exact else Launched(None, None, language, (*named, None))


def _shell(program: Program, place: Place, stdin: Input) -> Launched | None:
    arguments = list(program.arguments)
    if arguments and is_read_through(arguments):
        return None  # its text is read as a command of its own
    return _interpreted(known_programs.DIALECTS[program.name], arguments, place, stdin)


def is_read_through(arguments: list[Field]) -> bool:
    """Whether a shell gets a command as a literal text: ``-c``, ``-lc`` and the like."""
    is_text = arguments[0].exact and re.fullmatch(r"-[leux]*c", arguments[0].text) is not None
    return is_text and len(arguments) > 1 and arguments[1].exact


def _make(program: Program, place: Place, _: Input) -> Launched | None:
    texts = [field.text for field in program.arguments]
    if set(texts) & words("-n --dry-run --just-print -q --question --version -v --help -h -p"):
        return None
    if not makefile.is_plainly_called(texts):
        return Launched()
    named = _file_of(program.arguments, place, "-C", "-f", "Makefile")
    return Launched(path=named, language="make", arguments=("make", *_texts(program.arguments)))


def _just(program: Program, place: Place, _: Input) -> Launched | None:
    texts = [field.text for field in program.arguments]
    if set(texts) & words("-l --list --summary --show -n --dry-run --version --help -h --evaluate"):
        return None
    return Launched(path=_file_of(program.arguments, place, "-d", "-f", "justfile"))


def _file_of(arguments: tuple[Field, ...], place: Place, folder: str, file: str, usual: str) -> str | None:
    """The file that a build tool reads."""
    pairs = {field.text: arguments[at + 1] for at, field in enumerate(arguments[:-1])}
    name = pairs.get(file, Field(usual))
    inside = pairs.get(folder)
    if inside is None:
        return place.exact(name)
    return place.exact(Field(f"{inside.text}/{name.text}", inside.exact and name.exact))


def _deno(program: Program, place: Place, stdin: Input) -> Launched | None:
    """``deno run FILE``, ``deno eval TEXT``, ``deno FILE``, and the same of bun."""
    arguments = list(program.arguments)
    plain = [at for at, field in enumerate(arguments) if not field.text.startswith("-")]
    if not plain:
        texts = {field.text for field in arguments}
        return (
            None
            if texts & words("--version -v -V --help -h")
            else _interpreted(known_programs.SCRIPTED, arguments, place, stdin)
        )
    command = arguments[plain[0]].text
    following = arguments[plain[0] + 1 :]
    if command == "run":
        return _interpreted(known_programs.SCRIPTED, [*arguments[: plain[0]], *following], place, stdin)
    if command == "eval":
        text = next((field for field in following if not field.text.startswith("-")), Field("", exact=False))
        return Launched(content=text.text if text.exact else None)
    if command in known_programs.RUNNING["deno"]:
        return Launched()
    return Launched(path=place.exact(arguments[plain[0]])) if known_programs.SCRIPT_NAME.fullmatch(command) else None


def _bun(program: Program, place: Place, stdin: Input) -> Launched | None:
    operands = [field for field in program.arguments if not field.text.startswith("-")]
    names = [field for field in operands if field.text != "run"]
    is_text = any(known_programs.SCRIPTED.text.fullmatch(field.text) for field in program.arguments)
    if is_text or (names and ("/" in names[0].text or known_programs.SCRIPT_NAME.fullmatch(names[0].text))):
        return _deno(program, place, stdin)
    if operands[:1] == [Field("test")]:
        return _unlisted(Program(Field("jest"), program.arguments))
    if operands[:1] == [Field("build")]:
        return Launched()
    script = packages.script_of("bun", program.arguments)
    return _packaged(program, script, place) if script else None


def _packaged(program: Program, script: tuple[str, Field], place: Place) -> Launched:
    folder = script[1]
    if script[0] in ("create", "dlx"):
        return Launched()
    arguments = (program.name, *_texts(program.arguments))
    return Launched(
        path=place.exact(Field(f"{folder.text}/package.json" if folder.text else "package.json", folder.exact)),
        language="package",
        arguments=arguments,
    )


def _texts(fields: Iterable[Field]) -> tuple[str | None, ...]:
    """Arguments as a program gets them; None for one that is not certain."""
    return tuple(field.text if field.exact and not field.has_home else None for field in fields)


def _source(program: Program, place: Place, _: Input) -> Launched | None:
    field = program.arguments[0] if program.arguments else None
    if field is None or _SOURCED.fullmatch(field.text):
        return None
    arguments = (None, *_texts(program.arguments[1:])) if len(program.arguments) > 1 else (None,)
    return Launched(path=place.exact(field), language="source", arguments=arguments)


def _each(program: Program, _: Place, __: Input) -> Launched | None:
    """``xargs``, ``parallel`` and ``find -exec``: an interpreter or script among their words is run."""
    for before, field in zip((Field(""), *program.arguments), program.arguments, strict=False):
        if program.name == "find" and not before.text.startswith(("-exec", "-ok")):
            continue
        name = field.text.rpartition("/")[2]
        is_known = PYTHON.fullmatch(name) or name in known_programs.DIALECTS or name in _STARTERS
        if field.exact and (is_known or field.text.startswith(("./", "../"))):
            return Launched()
    return None


def _tool(name: str, texts: list[str]) -> Launched | None:
    plain = [text for text in texts if not text.startswith(("-", "+"))]
    if {"--version", "--help", "-h", "version", "help"} & set(texts) or texts in (["-v"], ["-V"]):
        return None
    if name in known_programs.RUNNING:
        if name in ("docker", "podman") and plain[:1] == ["compose"]:
            return Launched() if known_programs.RUNNING[name] & set(plain[1:4]) else None
        return Launched() if known_programs.RUNNING[name] & set(plain[:1]) else None
    return (
        None
        if known_programs.RUNNING_UNLESS[name] & {*plain[:1], *(text for text in texts if text.startswith("-"))}
        else Launched()
    )


_READERS: dict[str, Callable[[Program, Place, Input], Launched | None]] = {
    **dict.fromkeys(known_programs.SHELLS, _shell),
    "make": _make, "gmake": _make, "just": _just, "deno": _deno, "bun": _bun,
    "source": _source, ".": _source, "xargs": _each, "parallel": _each, "find": _each,
}  # fmt: skip


def is_known(name: str) -> bool:
    """Whether the tables know what a program of this name may write."""
    return name in _KNOWN or PYTHON.fullmatch(name) is not None
