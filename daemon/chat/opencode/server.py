"""A client of an OpenCode server (`opencode serve`): its models, and prompts to them in sessions deleted afterwards.

Safe to use from several threads, one prompt per session at a time. No tool of OpenCode's can run in our sessions: each
is made with a rule that denies everything, and is prompted through an agent that has no tools, or, where the server
cannot see our folder (it runs elsewhere), with every tool it names switched off. A session's title begins with
OWN_SESSION_TITLE, by which the daemon keeps it out of its archive and `sweep` finds what a crash left.
"""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from daemon import log
from daemon.chat import ModelUnavailable, OnText, Reply
from daemon.chat.opencode import folder
from daemon.chat.opencode.http import HttpClient, SessionGone
from daemon.chat.opencode.turn import Patience, Turn, TurnFollower, reply_of
from daemon.errors import OutputRefused
from daemon.model import Json
from daemon.records import OWN_MARK, OWN_SESSION_TITLE, integer, table, text

__all__ = ["OpenCodeServer", "Patience", "ServedModel", "SessionGone"]

_LOG = log.get("opencode")
_DENY = [{"permission": "*", "pattern": "*", "action": "deny"}]
_OFF = {"*": False, OWN_MARK: False}
_LISTED = 1000


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model of the server: `id` is ``provider/model``; tokens are 0 where the server does not say."""

    id: str
    name: str
    context_tokens: int
    reply_tokens: int
    has_tools: bool
    takes_images: bool = False
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where sessions run, as every request's query has it, and what keeps tools out of a prompt."""

    where: Mapping[str, str]
    prompt: Json


class OpenCodeServer:
    """The server at `url`.

    Args:
        directory: an own, empty folder that sessions run in, made on first use; None is ours beneath the user's cache.
        username, password: None takes OPENCODE_SERVER_USERNAME and OPENCODE_SERVER_PASSWORD, as the server does.
    """

    def __init__(
        self,
        url: str,
        *,
        patience: Patience | None = None,
        directory: Path | None = None,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        self.patience = patience or Patience()
        self._http = HttpClient(url, self.patience.create, username, password)
        self.url = self._http.url
        self._directory = directory or folder.default_directory()
        self._lock = threading.Lock()
        self._undeleted: set[str] = set()  # sessions that could not be deleted
        self._at_work: set[str] = set()  # sessions in which a turn is taken
        self._known_scope: _Scope | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Try once more to delete what could not be deleted, and release connections."""
        self._delete_undeleted()
        self._http.close()

    # -- what there is -------------------------------------------------------------------------------------------

    def health(self, *, timeout_s: float | None = None) -> str:
        """The server's version.

        Raises:
            ModelUnavailable: nothing usable answers there.
        """
        version = text(table(self._http.ask("GET", "/global/health", timeout_s or self.patience.create)).get("version"))
        if not version:
            raise ModelUnavailable(f"{self.url}: answers, but not as OpenCode does; check opencode.server_url")
        return version

    def models(self) -> tuple[ServedModel, ...]:
        """Every model that the user has configured there, in the server's order.

        Raises:
            ModelUnavailable: nothing usable answers there.
        """
        where = self._scope().where
        answer = table(self._http.ask("GET", "/config/providers", self.patience.read, query=where))
        settings = table(self._http.ask("GET", "/config", self.patience.read, query=where))
        firsts = [f"{provider}/{model}" for provider, model in table(answer.get("default")).items()]
        default = text(settings.get("model")) or next(iter(firsts), "")
        providers = answer.get("providers")
        models = [
            _served(text(provider.get("id")), name, table(model))
            for provider in map(table, providers if isinstance(providers, list) else ())
            for name, model in table(provider.get("models")).items()
        ]
        return tuple(replace(model, is_default=model.id == default) for model in models)

    def resolve(self, model: str = "") -> ServedModel:
        """The model ``provider/model``, or the server's default for an empty name.

        Raises:
            ModelUnavailable: the server is down, does not have it, or has no default; the message names alternatives.
        """
        models = self.models()
        for entry in models:
            if entry.id == model or (not model and entry.is_default):
                return entry
        names = [entry.id for entry in models]
        similar = difflib.get_close_matches(model, names, n=3, cutoff=0.4) or names[:3]
        cause = f"does not have {model}" if model else "has no default model"
        hint = (
            f"it has {', '.join(similar)}: set opencode.server_model"
            if similar
            else "add one with: opencode auth login"
        )
        raise ModelUnavailable(f"{self.url}: {cause}; {hint}")

    # -- sessions ------------------------------------------------------------------------------------------------

    def create(self, label: str = "chat") -> str:
        """A new session's id; `label`, one word, becomes part of its title.

        Raises:
            ModelUnavailable: nothing usable answers there.
        """
        self._delete_undeleted()
        where = self._scope().where
        body: Json = {"title": folder.title(label), "permission": _DENY}
        session_id = text(
            table(self._http.ask("POST", "/session", self.patience.create, query=where, body=body)).get("id")
        )
        if not session_id:
            raise ModelUnavailable(f"{self.url}: made no session; is this an OpenCode server?")
        return session_id

    @contextmanager
    def session(self, label: str = "chat") -> Iterator[str]:
        """A session for the length of a block, deleted however that ends. Raises as `create` does."""
        session_id = self.create(label)
        try:
            yield session_id
        finally:
            self.delete(session_id)

    def delete(self, session_id: str) -> bool:
        """Delete the session; one that is not there is fine. False when that failed: it is tried again later."""
        with self._lock:
            is_at_work = session_id in self._at_work
        if is_at_work:
            self.abort(session_id)  # 1.1 would go on writing its messages
        try:
            self._http.ask("DELETE", f"/session/{session_id}", self.patience.delete, query=self._scope().where)
        except SessionGone:
            pass
        except ModelUnavailable as error:
            _LOG.warning("session not deleted", session=session_id, reason=str(error))
            with self._lock:
                self._undeleted.add(session_id)
            return False
        with self._lock:
            self._undeleted.discard(session_id)
        return True

    def _delete_undeleted(self) -> None:
        with self._lock:
            session_ids = sorted(self._undeleted)
        for session_id in session_ids:
            if not self.delete(session_id):
                return  # the next one would take its time limit too

    def sweep(self, older_than_s: float = 86400) -> int:
        """Delete what earlier processes of ours left there; how many sessions that were.

        Those of processes that are gone, and those unused for `older_than_s` where that cannot be told: of another
        machine, or from before a reboot.

        Raises:
            ModelUnavailable: nothing usable answers there.
        """
        self._delete_undeleted()
        query = {**self._scope().where, "search": OWN_SESSION_TITLE, "limit": _LISTED}
        listed = self._http.ask("GET", "/session", self.patience.read, query=query)
        before = (time.time() - older_than_s) * 1000
        count = 0
        for session in map(table, listed if isinstance(listed, list) else ()):
            is_left = folder.is_left_behind(text(session.get("title")))
            if is_left or (is_left is None and integer(table(session.get("time")).get("updated")) < before):
                session_id = text(session.get("id"))
                self.abort(session_id)  # a turn that goes on would write it anew
                count += self.delete(session_id)
        if count:
            _LOG.info("left sessions deleted", count=count)
        return count

    # -- one turn ------------------------------------------------------------------------------------------------

    def prompt(
        self,
        session_id: str,
        system: str,
        content: str,
        *,
        images: Sequence[str] = (),
        model: str = "",
        timeout_s: float | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Say `content` in the session and wait for the answer, which `on_text` is told piece by piece as it comes.

        What was said before in the session is part of the conversation; `system` belongs to this turn alone. `images`
        are data: URLs, for a model that takes images: OpenCode tells any other that it cannot read them. `model` is
        ``provider/model``, or empty for the server's default. `timeout_s` takes the place of `patience.prompt`. A turn
        that fails, or whose caller is interrupted (`on_text` may raise), is aborted.

        Raises:
            SessionGone: the session is not there.
            ModelUnavailable: the server or the provider is down, too slow, lacks the model or refuses our key.
            BadReply: the answer is empty or was cut off, or the provider objects to the content.
            ContextLost: the conversation does not fit into the model's context.
            BadRequest: an image is broken.
        """
        scope = self._scope()
        provider, _, name = (model or self.resolve().id).partition("/")
        prompt = scope.prompt | {"system": system, "model": {"providerID": provider, "modelID": name}}
        # 1.1 accepts a prompt to a session that is not there, and says nothing more.
        self._http.ask("GET", f"/session/{session_id}", self.patience.create, query=scope.where)
        turn = Turn(session_id, on_text)
        limit_s = self.patience.prompt if timeout_s is None else timeout_s
        with self._lock:
            self._at_work.add(session_id)
        try:
            answers = TurnFollower(self._http, scope.where, turn, self.patience, limit_s).run(prompt, content, images)
        except BaseException:
            self.abort(session_id)
            raise
        finally:
            with self._lock:
                self._at_work.discard(session_id)
        return reply_of(answers, turn.error, self.url)

    def abort(self, session_id: str) -> bool:
        """Stop what goes on in the session. False when that failed: it is deleted next, or ends by itself."""
        path = f"/session/{session_id}/abort"
        try:
            self._http.ask("POST", path, self.patience.delete, query=self._scope().where)
        except ModelUnavailable as error:
            _LOG.warning("turn not aborted", session=session_id, reason=str(error))
            return False
        return True

    # -- where it all happens ------------------------------------------------------------------------------------

    def _scope(self) -> _Scope:
        """Resolved on first use: our agent if the server sees our folder, else every tool switched off by name."""
        with self._lock:
            if self._known_scope is None:
                self._known_scope = self._resolve_scope()
            return self._known_scope

    def _resolve_scope(self) -> _Scope:
        where = {"directory": str(self._directory)}
        self.health()
        try:
            folder.prepare(self._directory)
            agents = self._http.ask("GET", "/agent", self.patience.read, query=where)
        except (OutputRefused, OSError, ModelUnavailable) as error:
            # The folder cannot be made, or the server cannot see it.
            _LOG.warning("folder not used", directory=str(self._directory), reason=str(error))
            agents = []
        if any(table(agent).get("name") == folder.AGENT for agent in agents if isinstance(agents, list)):
            return _Scope(where, {"agent": folder.AGENT, "tools": _OFF})
        _LOG.warning("folder unseen by the server", server=self.url, directory=str(self._directory))
        return self._scope_elsewhere()

    def _scope_elsewhere(self) -> _Scope:
        tools = self._http.ask("GET", "/experimental/tool/ids", self.patience.read)
        disabled = {name: False for name in (tools if isinstance(tools, list) else ()) if isinstance(name, str)}
        return _Scope({}, {"tools": disabled | _OFF})


def _served(provider: str, name: str, model: Json) -> ServedModel:
    limit: Mapping[str, Any] = table(model.get("limit"))
    capabilities = table(model.get("capabilities"))
    return ServedModel(
        f"{provider}/{name}",
        text(model.get("name")) or name,
        integer(limit.get("context")),
        integer(limit.get("output")),
        bool(capabilities.get("toolcall")),
        bool(table(capabilities.get("input")).get("image")),
    )
