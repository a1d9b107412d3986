"""What a folder is for: what its own documents say, else the prompt that began it.

The prompt is one of the folder's first session. Beside a description it is shown only if sessions wrote that and most
of the folder's files. A folder that only holds projects is described by theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from daemon.files import Revision
from daemon.model import Operation
from daemon.reconstitute.facts.content import comparable, first_sentences, is_sentence_end, manifests, word_count
from daemon.reconstitute.facts.language import cues, sentences
from daemon.reconstitute.facts.purposes.documents import (
    LONGEST,
    is_readme,
    of_documents,
    of_main_document,
    of_manifests,
    of_readmes,
)
from daemon.reconstitute.facts.session_values import Citation, SessionFacts, Turn
from daemon.reconstitute.facts.values import Purpose
from daemon.reconstitute.recover import Recovered
from daemon.transcript.shell.names import words

_CREATES = frozenset({Operation.WRITE, Operation.APPEND, Operation.TOUCH, Operation.COPY})
_CHORES = words(
    "a again all and any at build bug bugs can check clean code continue do done error errors everything fail failing "
    "fails failure file files fix fixed get go green in is it just keep let lint look make more my no not now of ok "
    "okay on one out pass passes passing please project put red repo repository run see so test tests the them then "
    "there these thing things this those to try up us we with work works would you your that until"
)
"""A prompt of nothing but these words does not say what is worked on."""
_REDACTED = "[REDACTED:"
_SAME_SHARE = 0.7
"""Two descriptions say the same if this share of the words of one is in the other."""
_MOST_PROJECTS = 6
_SHORTEST_STATEMENT = 20
"""Characters of a sentence that is no greeting."""


def find(target: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> tuple[Purpose, ...]:
    """At most two descriptions of the folder, best first; for a folder of projects that of each project."""
    name = target.rstrip("/").rpartition("/")[2]
    statements = [*islice(of_readmes(name, sessions, files), 1), *islice(of_manifests(name, sessions, files), 1)]
    statements = statements or list(islice(of_documents(name, sessions, files), 1))
    statements = statements or list(islice(of_main_document(name, sessions, files), 1))
    projects = [] if statements else _of_projects(sessions, files)
    if projects:
        return tuple(projects[:_MOST_PROJECTS])
    older = {file.path for file in files if _is_older(file)}
    is_older = any(purpose.citation is not None and purpose.citation.path in older for purpose in statements)
    prompts = [] if is_older else islice(_of_prompts(target, sessions, files, is_only=not statements), 1)
    purposes: list[Purpose] = []
    for purpose in (*statements, *prompts):
        if not any(_says_the_same(purpose.text, purpose_.text) for purpose_ in purposes):
            purposes.append(purpose)
    return tuple(purposes[:2])


def _says_the_same(text: str, other_text: str) -> bool:
    """Whether two descriptions are one, or nearly all words of the shorter are in the longer."""
    shorter, longer = sorted((comparable(text), comparable(other_text)), key=len)
    fewer_words, more_words = sorted((_word_parts(text), _word_parts(other_text)), key=len)
    return shorter in longer or sentences.share(fewer_words, more_words) >= _SAME_SHARE


def _word_parts(text: str) -> frozenset[str]:
    return frozenset(part for word in sentences.words(text) for part in re.split(r"[-_/.]", word))


def _of_projects(sessions: Sequence[SessionFacts], files: Sequence[Recovered]) -> list[Purpose]:
    """The descriptions of the projects directly beneath a folder that holds several and is none itself."""
    below: dict[str, list[Recovered]] = {}
    for file in files:
        folder, _, relative = file.relative.partition("/")
        if relative:
            below.setdefault(folder, []).append(replace(file, relative=relative))
        elif is_readme(folder) or manifests.is_manifest(folder):
            return []
    projects = {
        folder: inner for folder, inner in below.items() if any(_heads_project(file.relative) for file in inner)
    }
    if len(projects) < 2:
        return []
    purposes = []
    for folder, inner in sorted(projects.items()):
        statements = (
            *islice(of_readmes(folder, sessions, inner), 1),
            *islice(of_manifests(folder, sessions, inner), 1),
        )
        purposes += [
            replace(purpose, text=f"{folder}: {purpose.text}", origin=f"{folder}/{purpose.origin}")
            for purpose in statements[:1]
        ]
    return purposes


def _heads_project(relative: str) -> bool:
    return is_readme(relative) or ("/" not in relative and manifests.is_manifest(relative))


# -- the prompt that began it ------------------------------------------------------------------------------------


def _of_prompts(
    target: str, sessions: Sequence[SessionFacts], files: Sequence[Recovered], *, is_only: bool
) -> Iterator[Purpose]:
    """The prompt that began the folder: it says what the folder was to become.

    It belongs to the very first session; a later one began something else. If most files are older than the sessions,
    the prompt did not begin the folder: it is used only if nothing else describes the folder (`is_only`). Only then
    may it be another than the session's first.
    """
    is_older = bool(files) and sum(map(_is_older, files)) * 2 > len(files)
    if is_older and not is_only:
        return
    session = next((facts for facts in _oldest_first(sessions) if _has_request(facts)), None)
    if session is None:
        return
    first_prompt = next((turn.prompt_id for turn in _own_turns(session, target)), "")
    for citation, text in _opening(session, target, files, is_only=is_only):
        if not is_only and citation.message_id != first_prompt:
            continue
        quote = _statement(text) or first_sentences(text, LONGEST, 2)
        origin = "first prompt" if citation.message_id == first_prompt else "an early prompt"
        origin += "; most files were there before" if is_older else ""
        yield Purpose(quote, origin, replace(citation, quote=quote))


def _statement(prompt: str) -> str:
    """The first sentence of a prompt if it states something at length, because tasks follow it; else empty."""
    first = first_sentences(prompt, LONGEST)
    sentence = sentences.whole(first)
    is_short = len(first) < _SHORTEST_STATEMENT or word_count(first) < 4
    if is_short or sentence.is_question or not is_sentence_end(first):
        return ""
    languages = cues.of(sentence.bare, prompt)
    is_task = any(language.find("task", language.without_lead(sentence.bare)) for language in languages)
    return "" if is_task else first


def _has_request(session: SessionFacts) -> bool:
    """Whether somebody asked for something in it; sub-agents' sessions belong to others."""
    return not session.session.parent_id and any(turn.prompt for turn in session.own_turns)


def _oldest_first(sessions: Sequence[SessionFacts]) -> list[SessionFacts]:
    return sorted(sessions, key=lambda session: (session.session.created, session.id))


def _opening(
    session: SessionFacts, target: str, files: Sequence[Recovered], *, is_only: bool
) -> Iterator[tuple[Citation, str]]:
    """The first prompt of a session that created files, or the one before it that says what is worked on.

    Without known files, the first prompt that says what is worked on: in such a folder one only talks.
    """
    created = {revision.message_id for file in files if (revision := creation(file)) is not None}
    older = {name for file in files if _is_older(file) for name in (file.relative, file.relative.rpartition("/")[2])}
    earlier: tuple[Citation, str] | None = None
    for turn in _own_turns(session, target):
        text = prompt_line(turn)
        if not is_only and any(_names(text, name) for name in older):
            return  # it continues what was there
        prompt = (Citation(session.id, turn.prompt_id, turn.time), text) if _says_what(text) else None
        earlier = earlier or prompt
        if earlier is not None and (not files or created & set(turn.message_ids)):
            yield prompt or earlier
            return


def _says_what(text: str) -> bool:
    """Whether a prompt says what is worked on; one that held a secret is not quoted for that."""
    if word_count(text) < 4 or _REDACTED in text:
        return False
    return any(word.casefold() not in _CHORES for word in re.findall(r"[^\W\d_]+", text))


def _own_turns(session: SessionFacts, target: str) -> Iterator[Turn]:
    """The turns in which a person asked for something in this very folder."""
    if session.session.parent_id or not session.is_whole or session.session.directory.rstrip("/") != target.rstrip("/"):
        return
    for turn in session.own_turns:
        if turn.prompt and not (turn.is_command or turn.is_compaction or turn.taken_back):
            yield turn


def creation(file: Recovered) -> Revision | None:
    """The revision in which a session created a file; None if the file is older, or nothing certain shows it.

    Another session may have created what a snapshot shows for the first time, so a write counts more.
    """
    if _is_older(file):
        return None
    creating = (revision for revision in file.revisions if revision.operation in _CREATES)
    return next(creating, file.revisions[0] if file.revisions[0].appeared else None)


def _names(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def _is_older(file: Recovered) -> bool:
    """Whether the first record of a file shows that it was there already."""
    first = file.revisions[0]
    is_observation = first.operation in (Operation.READ, Operation.READ_RANGE, Operation.SNAPSHOT, Operation.STATE)
    return (is_observation and not first.appeared) or first.operation in (Operation.EDIT, Operation.PATCH)


def prompt_line(turn: Turn) -> str:
    """A prompt on one line, without the quotation marks that ``opencode run`` puts around it."""
    line = " ".join(turn.prompt.split())
    return line[1:-1].strip() if len(line) > 2 and line[0] == line[-1] == '"' else line
