"""What a file is for: its docstring, heading or first comment, else the sentence of the prompt that created it.

Only the beginning of a file is read, and one sentence is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from daemon.display import strip_invisible
from daemon.reconstitute.facts.content import (
    Text,
    comments,
    comparable,
    cut,
    first_sentences,
    has_letters,
    is_mostly_links,
    last_text,
    manifests,
    without_markup,
    word_count,
)
from daemon.reconstitute.facts.content.markup import KINDS, blocks, front_title
from daemon.reconstitute.facts.language import cues
from daemon.reconstitute.facts.language.sentences import Sentence, split, whole
from daemon.reconstitute.facts.purposes import creation, prompt_line
from daemon.reconstitute.facts.session_values import Citation, SessionFacts, Turn
from daemon.reconstitute.facts.values import Purpose
from daemon.reconstitute.recover import Recovered
from daemon.redact import redact
from daemon.transcript.evidence.call_results import listed

Description: TypeAlias = tuple[str, str]
"""A text that says what a file is for, and where in the file it stands."""

_NO_DESCRIPTION: Description = ("", "")
_MOST = 120
_MOST_BYTES = 4 << 10
_MOST_JSON = 16 << 10
_MOST_BLOCKS = 20
_TITLE = re.compile(r"<title\b[^<>]{0,200}>([^<]{1,400})</title>", re.IGNORECASE)
_TEX = re.compile(r"\\(?:title|chapter|section)\*?\{([^{}]{1,400})\}")


def find(files: Sequence[Recovered], sessions: Sequence[SessionFacts]) -> dict[str, Purpose]:
    """What each file is for, by its absolute path; a file that nothing describes is left out."""
    turns = {message: (session, number) for session in sessions for number, turn in enumerate(session.turns)
             for message in turn.message_ids}  # fmt: skip
    prompts: dict[str, list[str]] = {}
    purposes: dict[str, Purpose] = {}
    for file in files:
        purpose = _from_file(file) or _of_prompt(file, turns, prompts)
        if purpose is not None:
            purposes[file.path] = purpose
    return purposes


def _from_file(file: Recovered) -> Purpose | None:
    """What the file says of itself."""
    name = file.relative.rpartition("/")[2]
    is_json = name.lower().endswith((".json", ".ipynb", ".webmanifest"))
    read = last_text(file, _MOST_JSON if is_json or manifests.is_manifest(name) else _MOST_BYTES)
    if read is None:
        return None
    text, origin = _description(name, read)
    quote = first_sentences(text, _MOST) if word_count(text) >= 1 and has_letters(text) else ""
    return Purpose(quote, origin, read.citation(quote)) if quote else None


def _description(name: str, read: Text) -> Description:
    low = name.lower()
    if manifests.is_manifest(low) and read.is_whole and (description := manifests.description(low, read.text)):
        return description, "description"
    ending = f".{low.rpartition('.')[2]}" if "." in low else ""
    if ending and ending in KINDS and low != "cmakelists.txt":
        folder = read.path.rpartition("/")[0].rpartition("/")[2]
        return _of_document(name, folder, read.text, KINDS[ending])
    if ending in (".json", ".ipynb", ".webmanifest"):
        return _of_json(read.text) if read.is_whole else _NO_DESCRIPTION
    if ending in (".html", ".htm", ".svg", ".xhtml"):
        title = _TITLE.search(read.text)
        if title is not None and word_count(title[1]) >= 1:
            return without_markup(title[1]), "title"
    if ending == ".tex":
        title = _TEX.search(read.text)
        if title is not None:
            return title[1], "title"
    return comments.about(name, read.text)


def _of_document(name: str, folder: str, text: str, kind: str) -> Description:
    """Its first heading; if that only repeats the name of the file or project, its title or first paragraph."""
    stem, folder = comparable(name.partition(".")[0]), comparable(folder)
    heading = paragraph = ""
    for block in islice(blocks(text, kind), _MOST_BLOCKS):
        if block.level:
            if heading:
                break
            heading = block.text
        elif word_count(block.text) >= 3 and not is_mostly_links(block.raw):
            paragraph = block.text
            break
    is_readme = stem.startswith("readme")
    if kind == "txt" and not is_readme:
        return _NO_DESCRIPTION
    title = front_title(text) if kind == "md" and not is_readme else ""
    if comparable(heading) in (stem, folder, "") and comparable(title) not in (stem, folder, ""):
        return title, "title"
    if is_readme or comparable(heading) in (stem, folder, ""):
        return paragraph, "first paragraph"
    return heading, "heading"


def _of_json(text: str) -> Description:
    """Its description or title; of a notebook the first heading."""
    document = manifests.json_object(text)
    for field in ("description", "title", "summary"):
        value = document.get(field)
        if isinstance(value, str) and value.strip():
            return value, field
    for cell in listed(document.get("cells")):
        source = cell.get("source") if isinstance(cell, dict) and cell.get("cell_type") == "markdown" else None
        markdown = "".join(line for line in source if isinstance(line, str)) if isinstance(source, list) else source
        if isinstance(markdown, str) and markdown.strip():
            return _of_document("", "", markdown[:_MOST_BYTES], "md")
    return _NO_DESCRIPTION


# -- the prompt ----------------------------------------------------------------------------------------------------

_SHORTEST_STEM = 3
_BEGINNING = 24
"""A sentence is about what its first characters name; further on the project is only where something is put."""


def _of_prompt(
    file: Recovered, turns: Mapping[str, tuple[SessionFacts, int]], prompts: dict[str, list[str]]
) -> Purpose | None:
    """The sentence that names the file, from the prompt under which a session created it, or from an earlier one."""
    revision = creation(file)
    if revision is None or revision.message_id not in turns:
        return None
    session, number = turns[revision.message_id]
    was_only_read = revision.appeared and not any(call.command for call in session.turns[number].calls)
    if was_only_read or session.turns[number].prompt.startswith("!"):
        return None  # another session created it meanwhile, or the user did with a command
    name = file.relative.rpartition("/")[2]
    for turn in session.turns[number::-1]:
        naming = [text for text in _sentences(turn, prompts) if _names(text, name) and _says_more(text, name)]
        texts = [text for text in naming if not _is_about_project(whole(text))]
        for sentence in texts:
            if name in sentence or texts == naming:  # a mere word may belong to the sentence about the project
                quote = cut(sentence, _MOST)
                return Purpose(quote, "prompt", Citation(session.id, turn.prompt_id, turn.time, quote))
    return None


def _sentences(turn: Turn, prompts: dict[str, list[str]]) -> list[str]:
    if turn.prompt_id not in prompts:
        pieces = [] if turn.is_compaction else split(prompt_line(turn))
        prompts[turn.prompt_id] = [redact(strip_invisible(piece.text)) for piece in pieces]
    return prompts[turn.prompt_id]


def _names(sentence: str, name: str) -> bool:
    """Whether a sentence has the file's name, or as a word the name without its ending."""
    stem = name.rpartition(".")[0]
    if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", sentence, re.ASCII):
        return True
    is_word = word_count(stem) == 1 and len(stem) >= _SHORTEST_STEM
    return is_word and re.search(rf"(?<![\w./-]){re.escape(stem)}(?![\w/-]|\.\w)", sentence, re.IGNORECASE) is not None


def _says_more(sentence: str, name: str) -> bool:
    return word_count(sentence.replace(name, " ")) >= 3


_WHOLE_PROJECT = re.compile(
    r"\b(?:this|the (?:whole|entire)|our|my)"
    r" (?:\w+ )?(?:repo|repository|project|folder|directory|codebase|workspace)\b|"
    r"\b(?:dies\w*|(?:das|der|die) (?:ganze|gesamte)|unser\w*|mein\w*)"
    r" (?:repo|repository|projekt|ordner|verzeichnis)\b|"
    r"\b(?:ce|cette|tout le|notre|mon) (?:dépôt|repo|projet|dossier|répertoire)\b|"
    r"\b(?:est[ea]|todo el|todo o|nuestro|nosso|mi|meu)"
    r" (?:repo|repositorio|repositório|proyecto|projeto|carpeta|pasta)\b|"
    r"\b(?:quest[oa]|tutto il|(?:il )?nostro|(?:il )?mio) (?:repo|repository|progetto|cartella)\b|"
    r"\b(?:deze|dit|onze|ons|mijn) (?:hele )?(?:repo|repository|project|map)\b|"
    r"\b(?:to|ten|tym|całe|całym|nasz\w*|mój) (?:repo|repozytorium|projekt\w*|katalog\w*|folder\w*)\b|"
    r"\b(?:эт\w+|весь|наш\w*|мой|ц\w{1,3}|цей|увесь|мій)"
    r" (?:репозитори\w+|репозиторі\w+|проект\w*|проєкт\w*|папк\w+)\b|"
    r"\b(?:det här|den här|hela|vårt|mitt|toto|tento|celý|náš|bu|tüm)"
    r" (?:repo\w*|projekt\w*|mapp\w*|složk\w+|proje\w*|depo\w*)\b|"
    r"(?:这个|本|整个|我们的|我的)(?:代码)?(?:仓库|项目|文件夹|目录)|(?:この|本)(?:リポジトリ|プロジェクト|フォルダ)|"
    r"(?:이|우리) ?(?:저장소|프로젝트|폴더)|هذا (?:المستودع|المشروع|المجلد)",
    re.IGNORECASE,
)


def _is_about_project(sentence: Sentence) -> bool:
    """Whether a sentence is about the whole project, or states a rule, and so is not the purpose of one file."""
    bare = sentence.bare
    return _WHOLE_PROJECT.search(bare[:_BEGINNING]) is not None or any(
        language.find("rule", bare) or (language.find("norm", bare) and not language.find("task", bare))
        for language in cues.of(bare)
    )
