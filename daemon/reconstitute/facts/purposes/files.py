"""What a file is for: its docstring, heading or first comment, else what the prompt says of it under which
it was written.

Only the beginning of a file is read, and of what it says one sentence is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from daemon.display import strip_invisible
from daemon.reconstitute.facts.content import comments, manifests
from daemon.reconstitute.facts.content.markup import KINDS, blocks, front_title
from daemon.reconstitute.facts.content.text import (
    Text,
    cut,
    has_letters,
    is_mostly_links,
    key,
    last_text,
    plain,
    sentences,
    weight,
)
from daemon.reconstitute.facts.language import cues
from daemon.reconstitute.facts.language.sentences import Sentence, split, whole
from daemon.reconstitute.facts.purposes.folder import asked, maker
from daemon.reconstitute.facts.session_values import Citation, SessionFacts, Turn
from daemon.reconstitute.facts.values import Purpose
from daemon.reconstitute.recover import Recovered
from daemon.redact import redact

_MOST = 120
_MOST_BYTES = 4 << 10
_MOST_JSON = 16 << 10
_MOST_BLOCKS = 20
_TITLE = re.compile(r"<title\b[^<>]{0,200}>([^<]{1,400})</title>", re.IGNORECASE)
_TEX = re.compile(r"\\(?:title|chapter|section)\*?\{([^{}]{1,400})\}")


def find(files: Sequence[Recovered], sessions: Sequence[SessionFacts]) -> dict[str, Purpose]:
    """By absolute path; a file of which nothing is known to tell is left out."""
    turns = {message: (session, number) for session in sessions for number, turn in enumerate(session.turns)
             for message in turn.message_ids}  # fmt: skip
    prompts: dict[str, list[str]] = {}
    found: dict[str, Purpose] = {}
    for file in files:
        purpose = _own(file) or _of_prompt(file, turns, prompts)
        if purpose is not None:
            found[file.path] = purpose
    return found


def _own(file: Recovered) -> Purpose | None:
    """What the file says of itself."""
    name = file.relative.rpartition("/")[2]
    is_json = name.lower().endswith((".json", ".ipynb", ".webmanifest"))
    read = last_text(file, _MOST_JSON if is_json or manifests.is_manifest(name) else _MOST_BYTES)
    if read is None:
        return None
    for text, origin in _said(name, read):
        if weight(text) >= 1 and has_letters(text):
            said = sentences(text, _MOST)
            return Purpose(said, origin, read.citation(said)) if said else None
    return None


def _said(name: str, read: Text) -> Sequence[tuple[str, str]]:
    low = name.lower()
    if manifests.is_manifest(low) and (told := manifests.description(low, read.text) if read.is_whole else ""):
        return [(told, "description")]
    ending = f".{low.rpartition('.')[2]}" if "." in low else ""
    if ending and ending in KINDS and low != "cmakelists.txt":
        folder = read.path.rpartition("/")[0].rpartition("/")[2]
        return _of_document(name, folder, read.text, KINDS[ending])
    if ending in (".json", ".ipynb", ".webmanifest"):
        return _of_json(read.text) if read.is_whole else []
    if ending in (".html", ".htm", ".svg", ".xhtml"):
        title = _TITLE.search(read.text)
        if title is not None and weight(title[1]) >= 1:
            return [(plain(title[1]), "title")]
    if ending == ".tex":
        title = _TEX.search(read.text)
        if title is not None:
            return [(title[1], "title")]
    return [comments.about(name, read.text)]


def _of_document(name: str, folder: str, text: str, kind: str) -> list[tuple[str, str]]:
    """Its first heading, or where that only repeats the file's or project's name its title or first paragraph."""
    stem, folder = key(name.partition(".")[0]), key(folder)
    heading = paragraph = ""
    for block in islice(blocks(text, kind), _MOST_BLOCKS):
        if block.level:
            if heading:
                break
            heading = block.text
        elif weight(block.text) >= 3 and not is_mostly_links(block.raw):
            paragraph = block.text
            break
    is_readme = stem.startswith("readme")
    if kind == "txt" and not is_readme:
        return []
    title = front_title(text) if kind == "md" and not is_readme else ""
    if key(heading) in (stem, folder, "") and key(title) not in (stem, folder, ""):
        return [(title, "title")]
    if is_readme or key(heading) in (stem, folder, ""):
        return [(paragraph, "first paragraph")]
    return [(heading, "heading")]


def _of_json(text: str) -> list[tuple[str, str]]:
    found = manifests.json_object(text)
    for field in ("description", "title", "summary"):
        value = found.get(field)
        if isinstance(value, str) and value.strip():
            return [(value, field)]
    for cell in found.get("cells", ()) if isinstance(found.get("cells"), list) else ():
        source = cell.get("source") if isinstance(cell, dict) and cell.get("cell_type") == "markdown" else None
        lines = "".join(one for one in source if isinstance(one, str)) if isinstance(source, list) else source
        if isinstance(lines, str) and lines.strip():
            return _of_document("", "", lines[:_MOST_BYTES], "md")
    return []


# -- the prompt ----------------------------------------------------------------------------------------------------

_SHORTEST_STEM = 3
_BEGINNING = 24
"""Characters in which a sentence names what it speaks of; further on the project is where something is put."""


def _of_prompt(
    file: Recovered, turns: Mapping[str, tuple[SessionFacts, int]], prompts: dict[str, list[str]]
) -> Purpose | None:
    """The sentence that names the file, of the prompt under which a session wrote it first, or of one before that."""
    made = maker(file)
    if made is None or made.message_id not in turns:
        return None
    session, number = turns[made.message_id]
    is_shown_only = made.appeared and not any(call.command for call in session.turns[number].calls)
    if is_shown_only or session.turns[number].prompt.startswith("!"):
        return None  # somebody else made it meanwhile, or a command line of the user's own did
    name = file.relative.rpartition("/")[2]
    for turn in session.turns[number::-1]:
        told = [one for one in _sentences(turn, prompts) if _names(one, name) and _says_more(one, name)]
        own = [one for one in told if not _is_of_more(whole(one))]
        for sentence in own:
            if name in sentence or own == told:  # beside a sentence on more a mere word is that one's, too
                said = cut(sentence, _MOST)
                return Purpose(said, "prompt", Citation(session.id, turn.prompt_id, turn.time, said))
    return None


def _sentences(turn: Turn, prompts: dict[str, list[str]]) -> list[str]:
    if turn.prompt_id not in prompts:
        read = [] if turn.is_compaction else split(asked(turn))
        prompts[turn.prompt_id] = [redact(strip_invisible(one.text)) for one in read]
    return prompts[turn.prompt_id]


def _names(sentence: str, name: str) -> bool:
    """Whether a sentence has the file's name, or that without its ending as a word."""
    stem = name.rpartition(".")[0]
    if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", sentence, re.ASCII):
        return True
    is_word = weight(stem) == 1 and len(stem) >= _SHORTEST_STEM
    return is_word and re.search(rf"(?<![\w./-]){re.escape(stem)}(?![\w/-]|\.\w)", sentence, re.IGNORECASE) is not None


def _says_more(sentence: str, name: str) -> bool:
    return weight(sentence.replace(name, " ")) >= 3


_WHOLE = re.compile(
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


def _is_of_more(sentence: Sentence) -> bool:
    """Whether a sentence speaks of the whole project, or states a rule, and so is no purpose of one file."""
    begins = _WHOLE.search(sentence.bare[:_BEGINNING])
    return begins is not None or any(
        one.find("rule", sentence.bare) or (one.find("norm", sentence.bare) and not one.find("task", sentence.bare))
        for one in cues.of(sentence.bare)
    )
