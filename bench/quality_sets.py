"""The question sets of bench/quality.py: texts that become sessions, and questions with the sessions that answer them.

Nothing of them is part of this repository: each reader takes a folder of the data that the user supplies, as its
publisher has it (bench/README.md says where from). The two sets of code are made of the packages that are installed.
A set is drawn anew by the same seed: the same data give the same sessions and questions.
"""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.quality_house import Question, QuestionSet, Talk
from daemon.model import Message, Session
from daemon.opencode.discover import Sources

_SEED = 7
_DAY = 1_795_000_000_000
"""When texts without a time were said, in epoch ms."""
_LEAST_WORDS, _MOST_WORDS = 3, 40
_RECORD_MB = 64


@dataclass(frozen=True, slots=True)
class Size:
    """How many texts and questions a set has at most. What belongs together, a dialogue or a meeting, stays whole."""

    texts: int
    questions: int


def sets(data: Path | None, size: Size) -> Iterator[tuple[str, Callable[[], QuestionSet] | str]]:
    """Each set by name, to be read when it is its turn; or what is missing in `data`."""
    for name, folder, read in (*_READERS, *_manuals(data)):
        place = (data or Path("--data")) / folder
        if folder and not place.is_dir():
            yield name, f"{place} is not there"
        else:
            yield name, partial(_read, name, read, place, size)


Read = tuple[list[Talk], list[Question]]


def _read(name: str, read: Callable[[Path, Size], Read], place: Path, size: Size) -> QuestionSet:
    return QuestionSet(name, *read(place, size))


def _pairs(pairs: list[tuple[str, str]], size: Size) -> Read:
    """A set of (question, text) pairs: a session for each distinct text; equal questions have several answers."""
    random.Random(_SEED).shuffle(pairs)
    numbers: dict[str, str] = {}
    answers: dict[str, set[str]] = {}
    for question, text in pairs:
        if text in numbers or len(numbers) < size.texts:
            right = numbers.setdefault(text, f"ses_{len(numbers):05d}")
            answers.setdefault(" ".join(question.split()), set()).add(right)
    talks = [Talk(session, "", _DAY, (text,)) for text, session in numbers.items()]
    questions = [Question(question, frozenset(right)) for question, right in answers.items() if question]
    return talks, questions[: size.questions]


def _sampled(questions: list[Question], size: Size) -> list[Question]:
    random.Random(_SEED).shuffle(questions)
    return questions[: size.questions]


# -- conversations -----------------------------------------------------------------------------------------------------

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):\d+")


def _locomo(folder: Path, size: Size) -> Read:
    """LoCoMo's evidence, all dialogues in one archive: `locomo10.json` or a file for each dialogue."""
    talks: list[Talk] = []
    questions: list[Question] = []
    for file in sorted(folder.glob("*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        for number, dialogue in enumerate(data if isinstance(data, list) else [data]):
            prefix = f"ses_{file.stem}_{number}"
            talks += _dialogue(prefix, dialogue.get("conversation", dialogue))
            for entry in dialogue["qa"]:
                evidence = [
                    session_number
                    for reference in entry.get("evidence") or ()
                    for session_number in _EVIDENCE.findall(str(reference))
                ]
                if entry.get("evidence"):  # an entry that is malformed beyond reading is asked all the same
                    right = frozenset(f"{prefix}_{session}" for session in evidence)
                    questions.append(Question(str(entry["question"]), right))
    return talks, _sampled(questions, size)


def _dialogue(prefix: str, spoken: dict[str, Any]) -> Iterator[Talk]:
    for number in sorted(int(match[1]) for key in spoken if (match := _SESSION.fullmatch(key))):
        if turns := spoken[f"session_{number}"]:
            created = _moment(spoken[f"session_{number}_date_time"])
            yield Talk(f"{prefix}_{number}", "", created, tuple(_turn(turn) for turn in turns))


def _moment(text: str) -> int:
    """``1:56 pm on 8 May, 2023`` as epoch ms."""
    return int(datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp() * 1000)


def _turn(turn: dict[str, Any]) -> str:
    text = f"{turn['speaker']}: {turn['text']}"
    return f"{text}\n[shares {turn['blip_caption']}]" if turn.get("blip_caption") else text


_TURNS = 20
_MORE_TURNS = 4  # than texts of other sets: they are short


def _meetings(folder: Path, size: Size) -> Read:
    """QMSum's specific questions: a session is 20 turns of a meeting, right are those with turns of the answer."""
    talks: list[Talk] = []
    questions: list[Question] = []
    meetings = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    for number, line in enumerate(meetings):
        meeting = json.loads(line)
        turns = [f"{turn['speaker']}: {turn['content']}" for turn in meeting["meeting_transcripts"]]
        if talks and len(talks) * _TURNS + len(turns) > _MORE_TURNS * size.texts:
            break
        sessions = [
            Talk(f"ses_{number:03d}_{start // _TURNS:03d}", "", _DAY, tuple(turns[start : start + _TURNS]))
            for start in range(0, len(turns), _TURNS)
        ]
        talks += sessions
        for query in meeting["specific_query_list"]:
            spans = [(int(first), int(last)) for first, last in query["relevant_text_span"]]
            right = {
                sessions[place].id
                for first, last in spans
                for place in range(first // _TURNS, last // _TURNS + 1)
                if place < len(sessions)
            }
            questions.append(Question(query["query"], frozenset(right)))
    return talks, _sampled(questions, size)


SAMPLES = ("chronik-1.1.65", "held-1.15.13", "lager-1.18.33", "opencode-1.18.33-sqlite")
"""The sample archives of the tests, of those that hold the same sessions only one."""
_FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures"
_MOST_OF_SAMPLE = 50  # questions: one sample has 200 sessions that are nearly alike


def _samples(_: Path, size: Size) -> Read:
    """What agents did: a person's prompt, and the session that it was taken out of, with answers and calls of tools."""
    talks: list[Talk] = []
    answers: dict[str, set[str]] = {}
    for name in SAMPLES:
        prompts: list[tuple[str, str]] = []
        with tempfile.TemporaryDirectory() as place, tarfile.open(_FIXTURES / f"{name}.tar.gz") as tar:
            tar.extractall(place, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            [records] = Path(place).glob("*/opencode")
            for talk, session_prompts in _recorded(records):
                talks.append(talk)
                prompts += [(prompt, talk.id) for prompt in session_prompts]
        random.Random(_SEED).shuffle(prompts)
        for prompt, session in prompts:  # also those of forks, which have the prompts of their origin
            if prompt in answers or sum(known_prompt in answers for known_prompt, _ in prompts) < _MOST_OF_SAMPLE:
                answers.setdefault(prompt, set()).add(session)
    return talks, _sampled([Question(prompt, frozenset(right)) for prompt, right in answers.items()], size)


def _recorded(data_dir: Path) -> Iterator[tuple[Talk, list[str]]]:
    """Each session of OpenCode's data without title and without a person's prompts, and these."""
    sources = Sources(data_dir, _RECORD_MB)
    try:
        sessions: dict[str, Session] = {}
        messages: dict[str, dict[str, Message]] = {}
        for source in sources.refresh():  # a newer storage may have more of a session, or less
            for id_ in source.sessions():
                sessions.setdefault(id_, source.read_session(id_))
                readings = [source.read_message(id_, message_id) for message_id in source.messages(id_)]
                messages.setdefault(id_, {}).update(
                    (reading.message.id, reading.message) for reading in readings if reading.message
                )
        for id_, session in sorted(sessions.items()):
            prompts = {} if session.parent_id else {message.id: _prompt(message) for message in messages[id_].values()}
            typed = {message: prompt for message, prompt in prompts.items() if len(prompt.split()) >= _LEAST_WORDS}
            unprompted = tuple(message for message in messages[id_].values() if message.id not in typed)
            yield Talk(id_, "", session.created, unprompted), list(typed.values())
    finally:
        sources.close()


def _prompt(message: Message) -> str:
    """What a person typed, without the quotes that `opencode run` puts around it; "" where a model wrote."""
    if message.role != "user":
        return ""
    texts = [part.data["text"] for part in message.parts if part.type == "text" and not part.data.get("synthetic")]
    return " ".join(" ".join(texts).split()).strip('"')


# -- code and commands -------------------------------------------------------------------------------------------------


def _web_questions(folder: Path, size: Size) -> Read:
    """CoSQA: web searches of people, and functions that were judged to answer them; the others are there too."""
    judged = json.loads((folder / "cosqa-dev.json").read_text("utf-8"))
    unjudged = [entry for file in sorted(folder.glob("test*.json")) for entry in json.loads(file.read_text("utf-8"))]
    pairs = [(entry["doc"] if entry.get("label") else "", entry["code"]) for entry in (*judged, *unjudged)]
    return _pairs(pairs, size)


def _commands(folder: Path, size: Size) -> Read:
    """NL2Bash: what a command line does, and the command line."""
    descriptions, lines = ((folder / f"all.{name}").read_text("utf-8").splitlines() for name in ("nl", "cm"))
    pairs = dict(zip(lines, descriptions, strict=True))  # of several descriptions the last
    return _pairs([(question, line) for line, question in pairs.items()], size)


PACKAGES = (
    *("numpy", "click", "jinja2", "hypothesis", "rich", "pydantic", "_pytest", "requests", "urllib3", "starlette"),
    *("httpx", "aiohttp", "attr", "cryptography", "dulwich", "fsspec", "huggingface_hub", "typer", "onnxruntime"),
    *("opentelemetry", "jsonschema", "pygments", "uvicorn", "websockets", "dateutil", "chromadb", "mcp", "tqdm"),
    *("tomlkit", "yaml", "setuptools", "structlog", "tenacity", "anyio", "httpcore", "markdown_it", "mypy"),
    *("packaging", "sortedcontainers", "referencing", "pip", "grpc", "oauthlib"),
)
_EXCLUDED = frozenset({"tests", "test", "testing", "_vendor", "vendored"})
_LEAST_LINES = 4
_SENTENCE = re.compile(r"(.+?[.!?])(?:\s|$)")


def _code(_: Path, size: Size) -> Read:
    """The first sentence of a docstring, and the function without docstring and comments."""
    return _functions(size, with_names=True)


def _nameless_code(_: Path, size: Size) -> Read:
    """The same with the function's name taken out of its text, so that the sentence shares fewer words with it."""
    return _functions(size, with_names=False)


def _functions(size: Size, *, with_names: bool) -> Read:
    functions = [function for package in PACKAGES for function in _documented_functions(package, with_names=with_names)]
    sources, sentences = (
        Counter(source for _, source in functions),
        Counter(sentence.lower() for sentence, _ in functions),
    )
    pairs = [
        (sentence if sentences[sentence.lower()] == 1 and _is_question(sentence) else "", source)
        for sentence, source in functions
        if sources[source] == 1
    ]
    return _pairs(pairs, size)


def _is_question(sentence: str) -> bool:
    return _LEAST_WORDS < len(sentence.split()) <= _MOST_WORDS


def _documented_functions(package: str, *, with_names: bool) -> Iterator[tuple[str, str]]:
    """(first sentence, source) of the documented functions and methods of an installed package."""
    spec = find_spec(package)
    for root in map(Path, spec.submodule_search_locations or () if spec else ()):
        for file in sorted(root.rglob("*.py")):
            if _EXCLUDED.isdisjoint(file.relative_to(root).parts):
                with suppress(SyntaxError, UnicodeDecodeError):  # templates and samples of other Python versions
                    yield from _documented(ast.parse(file.read_text(encoding="utf-8")), with_names=with_names)


def _documented(module: ast.Module, *, with_names: bool) -> Iterator[tuple[str, str]]:
    places: list[ast.Module | ast.ClassDef] = [module]
    places += [node for node in module.body if isinstance(node, ast.ClassDef)]
    for node in (node for place in places for node in place.body):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("__"):
            continue
        words = ast.get_docstring(node)
        node.body = node.body[1:] if words else node.body
        if words and node.body:
            source = ast.unparse(node)
            source = source if with_names else re.sub(rf"\b{node.name}\b", "f", source)
            if source.count("\n") + 1 >= _LEAST_LINES:
                paragraph = " ".join(re.split(r"\n\s*\n", words.strip())[0].split())
                sentence_match = _SENTENCE.match(paragraph)
                yield sentence_match[1] if sentence_match else paragraph, source


# -- documents ---------------------------------------------------------------------------------------------------------

_MOST_OF_PAGE = 2000  # characters: whole pages would take hours to embed
_MACRO = re.compile(r"^[.'][ \t]*(\w*)[ \t]*(.*)$")
_ESCAPES = re.compile(r"\\f(?:\(..|\[[^]]*\]|.)|\\[&,/|^:]|\\s[-+]?\d|\\\\\$\d|\\(?= )|\\\*?\(..|\\\*?\[[^]]*\]")
_SILENT = frozenset(
    {"TH", "Dd", "Dt", "Os", "ds", "de", "if", "ie", "el", "ad", "hy", "nh", "so", "nr", "tr", "rm", "ti"}
)
_NAME = re.compile(r"\s(?:[-\N{EN DASH}\N{EM DASH}]|\\\(em|\\\(en)\s")


def _manual(folder: Path, size: Size) -> Read:
    """Manual pages: what the NAME section says a thing does, and the page without that section."""
    pairs: list[tuple[str, str]] = []
    for file in sorted(folder.glob("man*/*.gz")):
        with suppress(UnicodeDecodeError, OSError):
            if page := _page(gzip.decompress(file.read_bytes()).decode("utf-8")):
                pairs.append(page)
    return _pairs(pairs, size)


def _page(source: str) -> tuple[str, str] | None:
    """The description and the rest of a page, without markup; None where it is no such page."""
    sections: list[list[str]] = []
    for line in source.replace("\\-", "-").replace("\\(aq", "'").splitlines():
        macro = _MACRO.match(line)
        if macro and macro[1] in ("SH", "Sh"):
            sections.append([])
        elif sections and not (macro and (macro[1] in _SILENT or not macro[1])):
            words = macro[2] if macro else line
            words = f"- {words}" if macro and macro[1] == "Nd" else words
            sections[-1].append(_ESCAPES.sub("", words).replace("\\e", "\\").replace('"', "").strip())
    if len(sections) < 2:
        return None
    name, text = " ".join(sections[0]), "\n".join(line for section in sections[1:] for line in section if line)
    parts = _NAME.split(f" {name} ", maxsplit=1)
    is_usable = len(parts) == 2 and len(parts[1].strip()) > 5 and len(text) > 300
    return (parts[1].strip(), text[:_MOST_OF_PAGE]) if is_usable else None


_HEADING = re.compile(r"^=head2 (.+)$", re.MULTILINE)
_POD = re.compile(r"[A-Z]<+ ?([^<>]*?) ?>+")


def _faq(folder: Path, size: Size) -> Read:
    """Perl's frequently asked questions and their answers, each without its heading."""
    pairs: list[tuple[str, str]] = []
    for file in sorted(folder.glob("perlfaq[1-9].pod")):  # perlfaq.pod lists all questions
        parts = _HEADING.split(file.read_text("utf-8", "replace"))
        for heading, body in zip(parts[1::2], parts[2::2], strict=True):
            text = _POD.sub(r"\1", body.split("\n=head1")[0]).strip()
            if text:
                pairs.append((_POD.sub(r"\1", heading), text))
    return _pairs(pairs, size)


_Reader = tuple[str, str, Callable[[Path, Size], Read]]


def _manuals(data: Path | None) -> Iterator[_Reader]:
    """A set for each language of `data` that has manual pages; without any, one that says where they are missing."""
    folders = sorted((data or Path("--data")).glob("man/*/"))
    yield from ((f"manual {folder.name}", f"man/{folder.name}", _manual) for folder in folders)
    if not folders:
        yield "manual", "man", _manual


_READERS: tuple[_Reader, ...] = (
    ("locomo", "locomo", _locomo),
    ("cosqa", "cosqa", _web_questions),
    ("faq", "faq", _faq),
    ("nl2bash", "nl2bash", _commands),
    ("code", "", _code),
    ("code, no names", "", _nameless_code),
    ("qmsum", "qmsum", _meetings),
    ("samples", "", _samples),
)
