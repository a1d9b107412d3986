"""What a source file says about itself: its docstring, or its first comment that is about the file.

Only the beginning is read, by the comment syntax of the language; nothing is executed, and it never raises. Licences,
directives for tools, dividers and commented-out code are skipped. So is a comment right above a definition, unless the
file has no other definition, or the comment is at the top and does not name the definition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from daemon.reconstitute.facts.content import has_letters, without_markup, word_count

_PYTHON = re.compile(
    r"\A(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*[rRuU]?(?:\"\"\"(.*?)(?:\"\"\"|\Z)|'''(.*?)(?:'''|\Z)|"
    r"\"([^\"\n]+)\"[ \t]*(?:\n|\Z)|'([^'\n]+)'[ \t]*(?:\n|\Z))",
    re.DOTALL,
)
_MODULEDOC = re.compile(r'@moduledoc\s+(?:~[sS])?(?:"""(.*?)(?:"""|\Z)|"([^"\n]+)")', re.DOTALL)
_POD = re.compile(r"^=head1[ \t]+NAME[ \t]*\n\s*([^\n]+)", re.MULTILINE)
_DOCSTRINGS = {
    **dict.fromkeys(("py", "pyi", "pyw"), _PYTHON),
    **dict.fromkeys(("ex", "exs"), _MODULEDOC),
    **dict.fromkeys(("pm", "pl", "pod"), _POD),
}
_LICENCE = re.compile(
    r"SPDX-|copyright|\(c\) ?(?:19|20)\d\d|©|licen[cs]ed (?:under|to)|all rights reserved|permission is hereby granted|"
    r"\b(?:GPL|MIT|Apache|BSD|MPL)[ -]?\w* licen[cs]e|@licen[cs]e|\blizenz\b.*\b(?:19|20)\d\d",
    re.IGNORECASE,
)
_DIRECTIVE = re.compile(
    r"^(?:!|-\*-|coding[:=]|(?:vim?|ex):|(?:eslint|prettier|tslint|jshint|jslint|stylelint|swiftlint|ktlint|biome|oxlint)"
    r"[- :](?:disable|enable|env|ignore|global)|globals? [\w$]+(?:: ?\w+)?(?:, ?[\w$]+(?:: ?\w+)?)*$|@(?:ts-|flow|jsx)|"
    r"(?:pylint|mypy|ruff|isort|yapf|fmt|pyright|rubocop|typed|cspell|flake8|hadolint|nolint|noqa|NOLINT|"
    r"frozen_string_literal)\b:?|type: ignore|pragma[: ]|shellcheck [a-z]+=|go:|\+build|(?:istanbul|c8|v8) ignore|"
    r"source(?:MappingURL|URL)|<reference|(?:syntax|escape)=|yaml-language-server|#?(?:end)?region\b|\$Id|"
    r"swift-tools-version|clang-format (?:on|off)|"
    r"@(?:author|version|since|date|package|copyright|link|see|param|returns?|throws|license|module|namespace|formatter|"
    r"noinspection|Suppress)\b|(?:TODO|FIXME|XXX|HACK)\b|compile\()",
)
_CODE = re.compile(r"[;{}]\s*$|^\s*(?:[\w.]+\s*=[^=]|(?:import|const|let|var|def|func|function)\b.*[(=:])")
_TAGS = re.compile(r"^(?:@(?:file(?:overview)?|brief|description|desc|summary)|[\\]brief)\b:?[ \t]*", re.IGNORECASE)
_OPENING = re.compile(
    r"\s*(?:package|import|from|use|using|module|namespace|require|include|library|source|set|export \*|extern|mod|"
    r"pub mod|declare|#\s*(?:include|pragma|ifndef|if|define|import)|@(?:use|import|charset|tailwind|file)|['\"]use|"
    r"<\?php|<!DOCTYPE|(?:const|let|var|local)\b[^=]{0,80}=\s*(?:await\s+)?(?:require|import)\b|FROM|ARG|%YAML|---|\\documentclass|"
    r"(?:version|name|on|services|openapi|apiVersion):|-?module\(|defmodule|unit|program|terraform|provider|syntax|"
    r"(?:(?:export|public|abstract|final|sealed|default|data|open|internal)\s+){0,4}"
    r"(?:class|interface|record|struct|enum|object|trait|actor|protocol|contract)\b)",
)
_PREAMBLE = re.compile(
    r"(?:pub(?:\([\w ]+\))? )?mod \w+;$|"
    r"(?:package|import|from|use|using|namespace|require|include|extern|declare|#\s*(?:include|pragma|ifndef|define)|"
    r"['\"]use \w+['\"]|<\?php|<\?xml|<!DOCTYPE|@file:|-module)(?!\w).*",
    re.IGNORECASE,
)
_CLASS = re.compile(
    r"\s*(?:@[\w.]+(?:\([^)\n]*\))?\s*|\[[^\]\n]*\]\s*|(?:export|public|private|abstract|final|sealed|static|data|"
    r"open|internal|default|partial|readonly)\s+)*"
    r"(?:class|interface|record|struct|enum|object|trait|actor|protocol|contract|mod|module)\b"
)
_DIVIDER = re.compile(r"^[\W_]+$|^([=*#/~+-])\1{3,}|([=*#/~+-])\2{3,}$")
_MARKUP = re.compile(r"</?(?:summary|remarks|para|p|b|i|code|c|see|ul|li|br|pre|h\d)\b[^<>]{0,200}>", re.IGNORECASE)
_MOST_LINES = 120
_INNER = ("//!", "/*!")
"""How a comment begins that is about what contains it."""
_STATEMENT = re.compile(
    r"(?!end\b|else\b|elif\b|except\b|finally\b|rescue\b|catch\b|then\b|do\b|fi\b|done\b)[^\s})\]>;]"
)
"""A line that begins something at the left margin."""
_DEFINED = re.compile(r"[=({:<]")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")


_TEMPLATE = re.compile(r"(?<=[^.])\.(?:example|sample|template|tmpl|dist)$")
"""The ending of a file that is to be copied and filled in."""


@dataclass(frozen=True, slots=True)
class _Syntax:
    """How comments are written; `always`: a comment at the top is about the file, whatever follows."""

    line: tuple[str, ...] = ()
    block: tuple[tuple[str, str], ...] = ()
    always: bool = False


_C = _Syntax(("//",), (("/*", "*/"),))
_HASH = _Syntax(("#",))
_SHELL = _Syntax(("#",), always=True)
_DASH = _Syntax(("--",), (("/*", "*/"),), always=True)
_XML = _Syntax((), (("<!--", "-->"),), always=True)
_ENDINGS: tuple[tuple[_Syntax, str], ...] = (
    (
        _C,
        """
        js mjs cjs ts mts cts jsx tsx go rs java c h cc cpp cxx hh hpp hxx cs kt kts swift scala dart zig groovy gradle
        scss less proto sol fs fsx m mm v sv d pug jsonc json5 glsl vert frag hlsl cu ino qml hx wgsl styl typ prisma
        vala php bicep""",
    ),
    (_Syntax((), (("/*", "*/"),)), "css"),
    (
        _HASH,
        """
        py pyi pyw rb pl pm r jl nim cr ex exs nix tf hcl tcl coffee gd yaml yml toml conf properties graphql
        gql cmake awk sed rake gemspec ps1 service timer socket env rego cue just elv raku pyx""",
    ),
    (_Syntax(("#", ";")), "cfg ini"),
    (_SHELL, "sh bash zsh fish ksh mk dockerfile"),
    (_DASH, "sql"),
    (_Syntax(("--",), (("--[[", "]]"), ("{-", "-}"))), "lua hs elm purs adb ads vhd vhdl idr"),
    (_Syntax(("%",)), "tex sty cls erl hrl pro"),
    (_Syntax((";",)), "lisp el clj cljs cljc edn scm rkt asm s fnl ahk"),
    (_Syntax(('"',)), "vim"),
    (_Syntax((), (("(*", "*)"),)), "ml mli sml pas pp"),
    (_XML, "html htm xml vue svelte xhtml xsl xslt svg jsp astro"),
    (_Syntax(("REM ", "rem ", "::"), (), always=True), "bat cmd"),
    (_Syntax(("'",)), "vb vbs bas"),
    (_Syntax(("!",)), "f90 f95 f03 f08"),
)
_SYNTAX = {ending: syntax for syntax, listed in _ENDINGS for ending in listed.split()}
_BY_FILE_NAME = {
    "makefile": _SHELL, "gnumakefile": _SHELL, "dockerfile": _SHELL, "containerfile": _SHELL, "justfile": _SHELL,
    "rakefile": _HASH, "gemfile": _HASH, "vagrantfile": _HASH, "procfile": _HASH, "cmakelists.txt": _HASH,
    "jenkinsfile": _C, "brewfile": _HASH, "build": _HASH, "workspace": _HASH, "caddyfile": _HASH,
}  # fmt: skip


def about(name: str, text: str) -> tuple[str, str]:
    """What the source file `name` says about itself, and whether in a ``docstring`` or ``comment``."""
    low = _TEMPLATE.sub("", name.lower())
    ending = low.rpartition(".")[2] if "." in low else ""
    doc = _docstring(ending, text)
    if doc:
        return doc, "docstring"
    syntax = _BY_FILE_NAME.get(low) or _SYNTAX.get(ending) or (_SHELL if text.startswith("#!") else None)
    return (_comment(text, syntax, name), "comment") if syntax is not None else ("", "")


def _docstring(ending: str, text: str) -> str:
    pattern = _DOCSTRINGS.get(ending)
    match = (pattern.match(text) if pattern is _PYTHON else pattern.search(text)) if pattern is not None else None
    raw = next((group for group in match.groups() if group), "") if match is not None else ""
    return _first_paragraph(raw.split("\n"), "")


def _comment(text: str, syntax: _Syntax, name: str) -> str:
    """The first comment that is about the file."""
    lines = text.split("\n")[:_MOST_LINES]
    at, is_top = 0, True
    while at < len(lines):
        bare = lines[at].strip()
        if (
            not bare
            or (at == 0 and bare.startswith("#!"))
            or (at < 3 and bare.startswith(("<?", "<!DOCTYPE", "%YAML")))
        ):
            at += 1
            continue
        block, end = _block(lines, at, syntax)
        if end == at:
            if not _PREAMBLE.match(bare):
                return ""
            is_top = False
            at += 1
            continue
        following = lines[end] if end < len(lines) else ""
        at = end
        is_about = _CLASS.match("\n".join(lines[end : end + 4])) if not is_top else _is_about(following, syntax)
        is_about = is_about or bare.startswith(_INNER) or _heads(lines, end, block, name if is_top else "", syntax)
        if _LICENCE.search(" ".join(block)) or not is_about:
            continue
        paragraph = _first_paragraph(block, name)
        if paragraph:
            return paragraph
    return ""


def _is_about(following: str, syntax: _Syntax) -> bool:
    return syntax.always or not following.strip() or _OPENING.match(following) is not None


def _heads(lines: list[str], end: int, block: list[str], name: str, syntax: _Syntax) -> bool:
    """Whether a comment right above a definition is about the file.

    It is if the file defines nothing else. At the top of the file (only then `name` is given) it also is if no other
    definition has a comment, and if it names the file or does not name the definition.
    """
    body = lines[end:]
    code = [number for number, line in enumerate(body) if _STATEMENT.match(line) and not _begins_comment(line, syntax)]
    if not code or code[0] != 0:
        return False
    is_documentation = lines[end - 1].rstrip().endswith("*/") or lines[end - 1].lstrip().startswith("///")
    if len(code) == 1:
        return bool(name) or is_documentation
    if not name or is_documentation or any(number and _begins_comment(body[number - 1], syntax) for number in code):
        return False  # tools take this for documentation of what follows
    stems = _stems(" ".join(block))
    return bool(stems & _stems(name.partition(".")[0])) or not stems & _stems(_DEFINED.split(body[0], maxsplit=1)[0])


def _begins_comment(line: str, syntax: _Syntax) -> bool:
    return line.strip().startswith((*syntax.line, *(begins for begins, _ in syntax.block)))


def _stems(text: str) -> set[str]:
    """The beginnings of its words, also of the words in a name such as ``readAll`` or ``read_all``."""
    return {word[:4].casefold().rstrip("s") for word in _PIECE.findall(text) if len(word) > 2}


def _block(lines: list[str], at: int, syntax: _Syntax) -> tuple[list[str], int]:
    """The text of the comment that begins in a line, and the number of the next line; the same line if none does."""
    bare = lines[at].strip()
    for begins, ends in syntax.block:
        if bare.startswith(begins):
            return _until(lines, at, begins, ends)
    if not any(bare.startswith(mark) for mark in syntax.line):
        return [], at
    block = []
    while at < len(lines) and (mark := next((m for m in syntax.line if lines[at].strip().startswith(m)), "")):
        block.append(lines[at].strip().removeprefix(mark).lstrip(mark[0] + "!" if mark != "REM " else " ").strip())
        at += 1
    return block, at


def _until(lines: list[str], at: int, begins: str, ends: str) -> tuple[list[str], int]:
    block = []
    first = lines[at].strip().removeprefix(begins)
    for number in range(at, len(lines)):
        line = first if number == at else lines[number].strip()
        inner, end, _ = line.partition(ends)
        block.append(re.sub(r"^[*!|~-]+(?=\s|$)|[*]+$", "", inner.strip()).strip())
        if end:
            return block, number + 1
    return block, len(lines)


def _first_paragraph(lines: list[str], name: str) -> str:
    """The first paragraph of a comment that says something, on one line."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        bare = _TAGS.sub("", _MARKUP.sub("", line).strip())
        if _DIRECTIVE.match(bare) or _DIVIDER.match(bare):
            bare = ""
        if bare and (bare.rpartition("/")[2].lower() in (name.lower(), f"file: {name.lower()}")):
            bare = ""
        if bare:
            paragraph.append(bare)
        elif paragraph:
            text = without_markup(" ".join(paragraph)[:2000])
            if word_count(text) >= 2 and has_letters(text) and not _CODE.search(paragraph[0]):
                return text
            paragraph = []
    return ""
