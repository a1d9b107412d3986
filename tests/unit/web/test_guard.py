"""What a foreign page, another program, or a browser without a session may do: nothing."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from daemon.web.entrance import SESSION_SECONDS, Entrance
from daemon.web.guard import HEADERS, Guard, cookie_name, set_session
from tests.unit.web.conftest import ADDRESS, PORT, Scripted, Visit

SESSIONS: dict[str, Any] = {"sessions": []}
FOREIGN = "http://evil.example"


@pytest.fixture
def client(visit: Visit) -> TestClient:
    """A browser with a session; the search page answers."""
    return visit(Scripted(*[SESSIONS] * 3))


@pytest.fixture
def seen() -> list[Request]:
    """The requests that have passed the guard."""
    return []


@pytest.fixture
def guarded(entrance: Entrance, seen: list[Request]) -> TestClient:
    """A browser with a session; every address takes forms."""

    async def take(http: Request) -> Response:
        seen.append(http)
        return PlainTextResponse("taken")

    app = Starlette(routes=[Route("/{rest:path}", take, methods=["GET", "POST", "OPTIONS", "PUT"])])
    client = TestClient(Guard(app, entrance, PORT), base_url=ADDRESS)
    client.cookies.set(cookie_name(PORT), entrance.enter(entrance.new_link()) or "")
    return client


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        f"127.0.0.1.evil.example:{PORT}",
        f"localhost.evil.example:{PORT}",
        f"sub.localhost:{PORT}",
        f"127.0.0.2:{PORT}",
        f"[::1]:{PORT}",
        f"127.0.0.1:{PORT}@evil.example",
        f"user@127.0.0.1:{PORT}",
        "",
    ],
)
def test_a_name_that_resolves_to_this_machine_is_refused(guarded: TestClient, seen: list[Request], host: str) -> None:
    """DNS rebinding: the browser believes that the page is of its own site."""
    for path in ("/", "/enter?key=x", "/static/page.js"):
        assert guarded.get(path, headers={"host": host}).status_code == 403
    assert seen == []


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}"])
def test_this_machine_is_answered(guarded: TestClient, host: str) -> None:
    assert guarded.get("/", headers={"host": host}).status_code == 200


def test_two_hosts_are_none(guarded: TestClient) -> None:
    headers = [("host", f"127.0.0.1:{PORT}"), ("host", FOREIGN)]
    assert guarded.get("/", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "origin", [FOREIGN, "null", "", "http://127.0.0.1", f"https://127.0.0.1:{PORT}", f"http://localhost:{PORT}"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "OPTIONS"])
def test_another_origin_is_refused(guarded: TestClient, seen: list[Request], origin: str, method: str) -> None:
    """The last is the same page by its other name: no page of ours goes from one to the other."""
    answer = guarded.request(method, "/", headers={"origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert seen == []


def test_a_form_without_an_origin_is_refused(guarded: TestClient) -> None:
    assert guarded.post("/", data={"a": "b"}).status_code == 403
    assert guarded.post("/", data={"a": "b"}, headers={"origin": ADDRESS}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_what_another_site_loads_is_refused(guarded: TestClient, seen: list[Request], site: str) -> None:
    for path, dest in [("/", "document"), ("/", "image"), ("/static/page.js", "script"), ("/enter", "iframe")]:
        assert guarded.get(path, headers={"sec-fetch-site": site, "sec-fetch-dest": dest}).status_code == 403
    assert seen == []


def test_a_link_in_another_program_lets_one_in(guarded: TestClient) -> None:
    """A terminal may be a page itself."""
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    assert guarded.get("/enter", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/status", "/session/ses_1", "/enterprise", "/static", "/nothing"])
@pytest.mark.parametrize("cookie", ["", "x", "\x01", 'a="b'])
def test_without_a_session_nothing_is_shown(guarded: TestClient, seen: list[Request], path: str, cookie: str) -> None:
    guarded.cookies.clear()
    for name in (cookie_name(PORT), cookie_name(PORT + 1)):
        answer = guarded.get(path, headers={"cookie": f"{name}={cookie}"})
        assert answer.status_code == 401
        assert "reconstitute web" in answer.text
    assert seen == []


@pytest.mark.parametrize(
    "other", ['theme={"dark": true}', "a b=c", "nameless", "=x", "bad[name]=1", 'q="open', "x=1,2 3"]
)
def test_cookies_of_other_pages_do_not_lock_one_out(
    guarded: TestClient, entrance: Entrance, seen: list[Request], other: str
) -> None:
    guarded.cookies.clear()
    session = f"{cookie_name(PORT)}={entrance.enter(entrance.new_link())}"
    for cookie in (f"{other}; {session}", f"{session}; {other}"):
        assert guarded.get("/", headers={"cookie": cookie}).status_code == 200
    assert len(seen) == 2


@pytest.mark.parametrize("path", ["/", "/enter?key=x", "/static/page.css", "/static/nothing", "/nothing"])
def test_every_answer_has_the_headers(client: TestClient, path: str) -> None:
    for answer in (client.get(path), client.get(path, headers={"host": "evil.example"})):
        assert HEADERS.items() <= answer.headers.items()
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_pages_are_not_kept_by_the_browser(client: TestClient) -> None:
    assert client.get("/").headers["cache-control"] == "no-store"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    response = Response()
    set_session(response, PORT, "key")
    attributes = {part.strip().lower() for part in response.headers["set-cookie"].split(";")[1:]}
    assert attributes == {"httponly", "samesite=strict", "path=/", f"max-age={SESSION_SECONDS}"}


def test_a_link_is_used_up(stranger: Visit, entrance: Entrance) -> None:
    client, key = stranger(Scripted(SESSIONS)), entrance.new_link()
    assert client.get("/").status_code == 401
    assert client.get("/enter", params={"key": key}).status_code == 200
    assert client.get("/").status_code == 200
    client.cookies.clear()
    used = client.get("/enter", params={"key": key})
    assert (used.status_code, "set-cookie" in used.headers) == (403, False)
    assert client.get("/").status_code == 401
