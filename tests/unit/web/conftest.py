"""The page over an engine in this process, asked as a browser asks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from daemon.control.calls import A, OnPart, Progress, Request, Service, silent
from daemon.errors import ReconstituteError
from daemon.web import application
from daemon.web.entrance import Entrance

PORT = 11436
ADDRESS = f"http://127.0.0.1:{PORT}"
Visit = Callable[[Service], TestClient]


class Scripted:
    """A service that gives prepared answers, or raises them; `requests` are those that it got."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.requests = list(answers), list[Any]()

    def call(self, request: Request[A], *, progress: Progress = silent, on_part: OnPart = silent) -> A:
        """See Service."""
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, ReconstituteError | ValueError):
            raise answer
        return answer


@pytest.fixture
def entrance() -> Entrance:
    """The keys of the page of this test."""
    return Entrance()


@pytest.fixture
def stranger(entrance: Entrance) -> Visit:
    """`stranger(service)`: a browser without a session. What fails in a view is answered as the server would."""

    def come(service: Service) -> TestClient:
        app = application(service, entrance, PORT)
        return TestClient(app, base_url=ADDRESS, follow_redirects=False, raise_server_exceptions=False)

    return come


@pytest.fixture
def visit(entrance: Entrance, stranger: Visit) -> Visit:
    """`visit(service)`: a browser that has come in by a link."""

    def enter(service: Service) -> TestClient:
        client = stranger(service)
        assert client.get("/enter", params={"key": entrance.new_link()}).status_code == 200
        return client

    return enter
