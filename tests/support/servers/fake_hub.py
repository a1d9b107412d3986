"""A stand-in for the Hugging Face hub: the models of a directory, over real HTTP, as the hub's own client asks for them.

Files from `LARGE` bytes on are as those in Git LFS: the hub redirects to another address, which takes ranges.
"""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

LARGE = 500


class FakeHub:
    """Use as a context manager. `models` maps OWNER/NAME to a directory; `requests` are (method, path, range, token).

    `cut`: after so many bytes of a large file the connection drops, once. `spoilt`: this file comes with other content.
    `status`: every request ends with it.
    """

    def __init__(self, models: dict[str, Path]) -> None:
        self.models = models
        self.requests: list[tuple[str, str, str, str]] = []
        self.cut = 0
        self.spoilt = ""
        self.status = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.requests]

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def listing(self, directory: Path) -> dict[str, Any]:
        """What the hub says of a model, with the hashes of its files."""
        files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
        siblings = []
        for path in files:
            content = path.read_bytes()
            about: dict[str, Any] = {"rfilename": path.relative_to(directory).as_posix(), "size": len(content)}
            about["blobId"] = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
            if len(content) >= LARGE:
                about["lfs"] = {"sha256": _sha256(content), "size": len(content), "pointerSize": 130}
            siblings.append(about)
        commit = hashlib.sha1(json.dumps(siblings).encode(), usedforsecurity=False).hexdigest()
        return {"id": directory.name, "sha": commit, "siblings": siblings}


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path, range_ = unquote(urlsplit(self.path).path), self.headers.get("Range", "")
        self.hub.requests.append((self.command, path, range_, self.headers.get("Authorization", "")))
        parts = path.strip("/").split("/")
        if self.hub.status:
            self._send(self.hub.status, b"{}")
        elif parts[0] == "cdn":
            self._large(parts[1], range_)
        elif parts[:2] == ["api", "models"] and "/".join(parts[2:4]) in self.hub.models:
            self._send(200, json.dumps(self.hub.listing(self.hub.models["/".join(parts[2:4])])).encode())
        elif (
            parts[2:3] == ["resolve"]
            and (self.hub.models.get("/".join(parts[:2]), Path("/absent")) / "/".join(parts[4:])).is_file()
        ):
            self._file(self.hub.models["/".join(parts[:2])], "/".join(parts[4:]))
        else:  # the hub does not tell what is private from what does not exist
            self._send(401, b'{"error":"Invalid username or password."}', {"X-Error-Code": "RepoNotFound"})

    def _file(self, directory: Path, name: str) -> None:
        listing = self.hub.listing(directory)
        about = next(sibling for sibling in listing["siblings"] if sibling["rfilename"] == name)
        headers = {"X-Repo-Commit": listing["sha"]}
        if "lfs" in about:
            sha256 = about["lfs"]["sha256"]
            headers |= {"X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(about["size"])}
            self._send(
                302,
                b"",
                headers
                | {
                    "Location": f"{self.hub.url.replace('127.0.0.1', 'localhost')}/cdn/{sha256}",
                    "ETag": f'"{about["blobId"]}"',
                },
            )
            return
        content = (directory / name).read_bytes()
        self._send(
            200, content if name != self.hub.spoilt else b"x" * len(content), headers | {"ETag": f'"{about["blobId"]}"'}
        )

    def _large(self, sha256: str, range_: str) -> None:
        files = (path for directory in self.hub.models.values() for path in directory.rglob("*") if path.is_file())
        path = next(path for path in files if _sha256(path.read_bytes()) == sha256)
        content = path.read_bytes() if path.name != self.hub.spoilt else b"x" * path.stat().st_size
        start = int(range_.removeprefix("bytes=").partition("-")[0]) if range_ else 0
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if range_ else {}
        cut, self.hub.cut = self.hub.cut, 0
        self._send(206 if range_ else 200, content[start:], headers | {"ETag": f'"{sha256}"'}, cut)

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None, cut: int = 0) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:cut] if cut else content)
        self.close_connection = self.close_connection or bool(cut)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
