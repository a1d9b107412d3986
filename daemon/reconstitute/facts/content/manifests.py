"""What a project's manifests say: its description, and what it requires. They are parsed or searched, never executed.

XML is searched as text, so that no entity is ever expanded. A manifest that is not valid says nothing.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator

from daemon import records
from daemon.model import Json

_ERRORS = (ValueError, RecursionError, configparser.Error, SyntaxError, MemoryError)
_JSON_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_XML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_XML_DESCRIPTION = re.compile(r"<description>([^<&]{1,2000})</description>", re.IGNORECASE)
_NESTED = ("parent", "dependencies", "dependencyManagement", "build", "profiles", "plugins", "licenses", "developers",
           "issueManagement", "distributionManagement", "reporting", "mailingLists", "organization")  # fmt: skip
_QUOTED = r"""(?:"((?:[^"\\\n]|\\.){1,1000})"|'((?:[^'\\\n]|\\.){1,1000})')"""
_YAML_VALUE = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:[ \t]*(.*)")


def toml(text: str) -> Json:
    """A TOML document; empty if it is invalid."""
    try:
        return tomllib.loads(text)
    except _ERRORS:
        return {}


def json_object(text: str) -> Json:
    """A JSON object, also with comments and trailing commas; empty if it is invalid."""
    for attempt in (text, None):
        try:
            bare = attempt if attempt is not None else _TRAILING_COMMA.sub(r"\1", _JSON_COMMENT.sub(r"\1", text))
            value = json.loads(bare)
            return value if isinstance(value, dict) else {}
        except _ERRORS:
            continue
    return {}


def ini(text: str) -> configparser.RawConfigParser:
    """An INI file; without sections if it is invalid."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except _ERRORS:
        return configparser.RawConfigParser()
    return parser


def yaml_top(text: str) -> dict[str, str]:
    """The plain texts at the top level of a YAML mapping; folded and literal ones on one line. No anchors, no types."""
    texts: dict[str, str] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        pair = _YAML_VALUE.fullmatch(line)
        if pair is None or pair[1] in texts:
            continue
        value = pair[2].strip()
        if re.fullmatch(r"[>|][+-]?\d?", value) or (value and value[0] not in "\"'[{&*!|>#"):
            continuation = []
            for following in lines[number + 1 :]:
                if following.strip() and not following.startswith((" ", "\t")):
                    break
                continuation.append(following.strip())
            first = "" if value[0] in ">|" else re.sub(r"\s+#.*", "", value)
            if first and continuation and ":" in "".join(continuation[:1]):
                continuation = []
            value = " ".join([first, *continuation]).strip()
        elif value[:1] in ('"', "'"):
            ends = value.rfind(value[0])
            value = value[1:ends] if ends > 0 else ""
        else:
            value = ""
        if value:
            texts[pair[1]] = value
    return texts


def description(name: str, text: str) -> str:
    """What the manifest called `name` says the project is; empty if it does not say it."""
    read = _reader(name)
    if read is None:
        return ""
    try:
        return next((value.strip() for value in read(text) if isinstance(value, str) and value.strip()), "")
    except _ERRORS:
        return ""


def _reader(name: str) -> Callable[[str], Iterator[object]] | None:
    low = name.lower()
    if low in _READERS:
        return _READERS[low]
    ending = low.rpartition(".")[2] if "." in low else ""
    return _BY_ENDING.get(ending)


def _pyproject(text: str) -> Iterator[object]:
    document = toml(text)
    yield records.table(document.get("project")).get("description")
    tools = records.table(document.get("tool"))
    yield records.table(tools.get("poetry")).get("description")
    yield records.table(records.table(tools.get("flit")).get("metadata")).get("description")


def _cargo(text: str) -> Iterator[object]:
    document = toml(text)
    yield records.table(document.get("package")).get("description")
    workspace = records.table(document.get("workspace"))
    yield records.table(workspace.get("package")).get("description")


def _setup_cfg(text: str) -> Iterator[object]:
    yield ini(text).get("metadata", "description", fallback=None)


def _setup_py(text: str) -> Iterator[object]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setup":
            for keyword in node.keywords:
                if keyword.arg == "description" and isinstance(keyword.value, ast.Constant):
                    yield keyword.value.value


def _json(text: str) -> Iterator[object]:
    document = json_object(text)
    value = document.get("description") or document.get("summary")
    yield "" if isinstance(value, str) and value.startswith("__MSG_") else value


def _pom(text: str) -> Iterator[object]:
    bare = _XML_COMMENT.sub("", text)
    for name in _NESTED:
        start = bare.find(f"<{name}>")
        while start >= 0:
            end = bare.find(f"</{name}>", start)
            bare = bare[:start] + (bare[end:] if end >= 0 else "")
            start = bare.find(f"<{name}>", start + 1)
    yield from _XML_DESCRIPTION.findall(bare)


def _xml(text: str) -> Iterator[object]:
    yield from _XML_DESCRIPTION.findall(_XML_COMMENT.sub("", text))


def _go_mod(text: str) -> Iterator[object]:
    before = re.split(r"^module\b", text, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line.strip() for line in before.split("\n") if line.strip()]
    comments = [line.removeprefix("//").strip() for line in lines if line.startswith("//")]
    if len(comments) == len(lines) and not any("eprecated:" in line for line in comments):
        yield " ".join(comments)


def _yaml(text: str) -> Iterator[object]:
    document = yaml_top(text)
    yield document.get("description") or document.get("summary")


def _assigned(*names: str, sign: str = "[=:]") -> Callable[[str], Iterator[object]]:
    """A reader of ``name = "text"`` lines."""
    pattern = re.compile(
        rf"^[ \t]*(?:[\w.]+\.)?(?:{'|'.join(names)})[ \t]*\(?[ \t]*(?:{sign})?[ \t]*(?:<<~\w+)?[ \t]*{_QUOTED}",
        re.MULTILINE,
    )

    def read(text: str) -> Iterator[object]:
        for match in pattern.finditer(text):
            yield re.sub(r"\\(.)", r"\1", match[1] or match[2])

    return read


def _fields(*names: str) -> Callable[[str], Iterator[object]]:
    """A reader of ``Name: text`` lines that go on where the next ones are indented."""
    pattern = re.compile(
        rf"^(?:{'|'.join(names)})[ \t]*:[ \t]*((?:[^\n]+|\n[ \t]+)(?:\n[ \t]+\S[^\n]*)*)", re.MULTILINE | re.IGNORECASE
    )

    def read(text: str) -> Iterator[object]:
        for match in sorted(pattern.finditer(text), key=lambda match: not match[0].lower().startswith("synopsis")):
            yield " ".join(match[1].split())

    return read


def _cmake(text: str) -> Iterator[object]:
    for project in re.finditer(r"\bproject\s*\(([^()]{0,1000})\)", text, re.IGNORECASE):
        match = re.search(r'\bDESCRIPTION\s+"([^"]{1,1000})"', project[1])
        if match:
            yield match[1]


_READERS: dict[str, Callable[[str], Iterator[object]]] = {
    "pyproject.toml": _pyproject, "setup.cfg": _setup_cfg, "setup.py": _setup_py, "package.json": _json,
    "cargo.toml": _cargo, "composer.json": _json, "deno.json": _json, "deno.jsonc": _json, "jsr.json": _json,
    "bower.json": _json, "elm.json": _json, "manifest.json": _json, "pom.xml": _pom, "go.mod": _go_mod,
    "pubspec.yaml": _yaml, "shard.yml": _yaml, "chart.yaml": _yaml, "galaxy.yml": _yaml, "action.yml": _yaml,
    "action.yaml": _yaml, "snapcraft.yaml": _yaml, "package.yaml": _yaml, "mkdocs.yml": _assigned("site_description"),
    "mix.exs": _assigned("description"), "build.gradle": _assigned("description"),
    "build.gradle.kts": _assigned("description"), "build.sbt": _assigned("description", sign=":="),
    "conanfile.py": _assigned("description"), "flake.nix": _assigned("description"), "cmakelists.txt": _cmake,
    "description": _fields("title"), "dune-project": _assigned(r"\(synopsis", sign=" "),
}  # fmt: skip
_BY_ENDING: dict[str, Callable[[str], Iterator[object]]] = {
    "gemspec": _assigned("summary", "description"), "nimble": _assigned("description"),
    "cabal": _fields("synopsis", "description"), "opam": _assigned("synopsis"), "csproj": _xml, "fsproj": _xml,
    "nuspec": _xml, "rockspec": _assigned("summary"), "podspec": _assigned("summary"),
}  # fmt: skip
NAMES = tuple(_READERS)
"""The manifests that are known by name, the best first."""


def is_manifest(name: str) -> bool:
    """Whether a file of this name may describe its project."""
    return _reader(name) is not None


# -- what the project requires -----------------------------------------------------------------------------------


def names_requirements(name: str) -> bool:
    """Whether a file of this name at the top of a project may name versions or dependencies."""
    return name.lower() in _REQUIREMENT_READERS


def requirements(name: str, text: str) -> Iterator[str]:
    """The versions and pinned dependencies that the file called `name` requires."""
    return _REQUIREMENT_READERS[name.lower()](text)


_PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*(?:\[[\w, .-]*\])?\s*(?:==|~=|>=|<=|===|<|>|!=)[^\s;#]+)", re.MULTILINE)


def _pinned(text: str) -> Iterator[str]:
    for pin in _PINNED.finditer(text):
        yield pin[1].replace(" ", "")


def _python_needs(text: str) -> Iterator[str]:
    document = toml(text)
    project = records.table(document.get("project"))
    poetry = records.table(records.table(records.table(document.get("tool")).get("poetry")).get("dependencies"))
    version = project.get("requires-python") or poetry.get("python")
    if isinstance(version, str):
        yield f"Python {version}"
    dependencies = project.get("dependencies")
    for dependency in dependencies if isinstance(dependencies, list) else []:
        if isinstance(dependency, str):
            yield dependency.partition(";")[0].strip()


def _node_needs(text: str) -> Iterator[str]:
    for name, version in records.table(json_object(text).get("engines")).items():
        if isinstance(version, str):
            yield f"{'Node' if name == 'node' else name} {version}"


def _rust_needs(text: str) -> Iterator[str]:
    version = records.table(toml(text).get("package")).get("rust-version")
    if isinstance(version, str):
        yield f"Rust {version}"


def _go_needs(text: str) -> Iterator[str]:
    yield from (f"Go {match[1]}" for match in re.finditer(r"^go[ \t]+([\d.]+)", text, re.MULTILINE))


def _php_needs(text: str) -> Iterator[str]:
    version = records.table(json_object(text).get("require")).get("php")
    if isinstance(version, str):
        yield f"PHP {version}"


def _version_file(language: str) -> Callable[[str], Iterator[str]]:
    def read(text: str) -> Iterator[str]:
        first = text.strip().split("\n")[0].strip()
        if re.fullmatch(r"[\w./-]{1,40}", first) and any(sign.isdigit() for sign in first):
            yield f"{language} {first}"

    return read


_REQUIREMENT_READERS: dict[str, Callable[[str], Iterator[str]]] = {
    "requirements.txt": _pinned, "pyproject.toml": _python_needs, "package.json": _node_needs,
    "cargo.toml": _rust_needs, "go.mod": _go_needs, "composer.json": _php_needs,
    ".python-version": _version_file("Python"),
    ".nvmrc": _version_file("Node"), ".node-version": _version_file("Node"), ".ruby-version": _version_file("Ruby"),
}  # fmt: skip
