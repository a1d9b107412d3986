"""Search: `/`. Each search is a link; while one types, htmx fetches the results alone.

Reading a question with a model takes longer than finding its words, and loading the model takes seconds. So what is
typed is answered by words first, unless a mode is chosen, and that answer fetches the whole one if nobody types on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import get_args

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.control import calls
from daemon.hints import not_searchable
from daemon.model import Json, Kind
from daemon.recall.query import MOST_OFFSET, Match, Role, Sort
from daemon.web.site import WHOLE, is_part, site_of, url

PAGE = 30
"""Results that are fetched at once; the next ones follow as one scrolls."""
_SESSIONS = 100
_MODES = {
    "hybrid": "words and meaning",
    "literal": "exactly this text",
    "smart": "words",
    "fuzzy": "similar spellings",
    "regex": "regular expression",
    "semantic": "meaning",
}
_CHOICES = {
    "mode": [(word, _MODES[word]) for word in get_args(Match)],
    "role": [("", "anyone"), *((word, word) for word in get_args(Role) if word != "all")],
    "sort": [("", "best first"), *((word, f"{word} first") for word in get_args(Sort) if word != "relevance")],
}
_ARGUMENTS = {"mode": "match", "project": "projectID", "kind": "kinds", "q": "query"}
"""Fields whose argument of recall has another name."""
_TYPED = "smart"
"""The mode of the first answer, which asks for the whole one (site.WHOLE)."""
_ALWAYS: Json = {"results": PAGE, "explain": True}


@dataclass(frozen=True, slots=True)
class Search:
    """A search as the address has it; empty values are left out of it."""

    q: str = ""
    mode: str = ""
    project: str = ""
    directory: str = ""
    since: str = ""
    until: str = ""
    role: str = ""
    sort: str = ""
    kind: tuple[str, ...] = ()
    offset: int = 0

    @property
    def url(self) -> str:
        """Its address."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return url(**{name: value for name, value in named.items() if value})

    def arguments(self) -> Json:
        """Those of the call recall."""
        named = {_ARGUMENTS.get(field.name, field.name): getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if name == "kinds" else value for name, value in named.items() if value}


def read(query: QueryParams) -> Search:
    """The search in an address. A value that recall does not know stays, and recall says so."""
    texts = {field.name: query.get(field.name, "").strip() for field in fields(Search)}
    kinds, offset = tuple(filter(None, query.getlist("kind"))), texts.pop("offset")
    del texts["kind"]
    texts["mode"] = texts["mode"].removeprefix("hybrid")  # the default
    return Search(**texts, kind=kinds, offset=int(offset[:6]) if offset.isdecimal() and offset.isascii() else 0)


async def search(http: Request) -> Response:
    """The results; for htmx only them, and beyond the first ones only what follows."""
    site, wanted = site_of(http), read(http.query_params)
    is_first = is_part(http) and not (wanted.offset or wanted.mode or WHOLE in http.query_params)
    answer: Json | None = None
    groups = list[list[Json]]()
    values: Json = {}
    if wanted.q:
        arguments = wanted.arguments() | _ALWAYS | ({"match": _TYPED} if is_first else {})
        answer = await site.ask(calls.Recall("recall", arguments), http=http)
        groups = by_session(answer["results"])
        values = {"state": _state(answer), "suggestions": list(_suggested(answer, wanted))}
        values |= {"more": _more(wanted, answer), "whole": ""}
        if is_first:  # the whole answer tells what follows it, and what else may help
            values |= {"more": "", "suggestions": [], "whole": f"{wanted.url}&{WHOLE}=1"}
    values |= {"search": wanted, "answer": answer, "groups": groups}
    if is_part(http) and wanted.q:
        response = await site.page(http, "more.html" if wanted.offset else "results_part.html", **values)
        if not wanted.offset:
            response.headers["hx-replace-url"] = wanted.url
        return response
    listed = await site.ask(calls.Recall("recall_sessions", {"limit": _SESSIONS}), http=http)
    values |= {"sessions": listed["sessions"]}
    if is_part(http):
        response = await site.page(http, "latest.html", **values)
        response.headers["hx-replace-url"] = wanted.url
        return response
    return await site.page(http, "search.html", choices=_CHOICES, kinds=list(map(str, Kind)), **values)


def by_session(results: Iterable[Json]) -> list[list[Json]]:
    """Results by session; sessions in the order of their best result."""
    groups = dict[str, list[Json]]()
    for result in results:
        groups.setdefault(result["sessionID"], []).append(result)
    return list(groups.values())


def _more(wanted: Search, answer: Json) -> str:
    """The address of the results that follow; empty if these are the last."""
    following = wanted.offset + PAGE
    if not answer["truncated"] or len(answer["results"]) < PAGE or following > MOST_OFFSET:
        return ""
    return replace(wanted, offset=following).url


def _state(answer: Json) -> str:
    """What was searched, and what is not indexed yet."""
    waiting, messages = answer["coverage"]["waiting"], answer["coverage"]["messages"]
    behind = not_searchable(waiting["lexical"], waiting["semantic"], waiting["tools"])
    return f"{messages:,} messages, {behind or 'all of them indexed'}"


def _suggested(answer: Json, wanted: Search) -> Iterable[tuple[str, str]]:
    """Suggestions as (sentence, address); the address is empty if the page has no field for what it changes."""
    names = {_ARGUMENTS.get(field.name, field.name): field.name for field in fields(Search)}
    for suggestion in answer["suggestions"]:
        example = suggestion.get("example") or {}
        known = {names[name]: value for name, value in example.items() if name in names}
        is_whole = bool(known.get("q")) and example.keys() <= {*names, *_ALWAYS}
        changed: Json = {name: tuple(value) if name == "kind" else value for name, value in known.items()}
        address = Search(**changed).url if is_whole else ""
        yield f"{suggestion['action']} ({suggestion['reason']})", address if address != wanted.url else ""


ROUTES = [Route("/", search)]
