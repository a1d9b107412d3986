"""A real OpenCode for the tests: installed from npm into a cache, driven over its own HTTP API.

Everything it reads and writes lies beneath one directory of the test's own, it talks to nobody but the scripted model,
and it dies with the test. `install` raises NotAvailableError only when npm is missing or its registry cannot be reached;
every other failure of the installation is a failure.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import httpx

from tests.live.fetched import NotAvailableError, cache_dir, fetched, npm_install
from tests.live.scripted_model import MODEL
from tests.support.processes.ports import free_port

PROVIDER = "scripted"


def install(version: str) -> Path:
    """The binary of this version, downloaded on first use.

    Raises:
        NotAvailableError: npm is missing, or the npm registry cannot be reached.
        RuntimeError: npm failed for another reason, or none of the version's binaries runs on this machine.
    """
    npm = shutil.which("npm")
    home = cache_dir() / "opencode-binary" / version
    if npm is None and not home.exists():
        raise NotAvailableError(f"npm is not installed, so OpenCode {version} cannot be fetched")
    return (fetched(home, lambda prefix: _fetch(str(npm), version, prefix)) / "opencode").resolve()


def _fetch(npm: str, version: str, prefix: Path) -> None:
    """Install the first binary that runs here, and link it as `opencode`; they differ by processor and C library.

    The package opencode-ai would bring up to four of them, 180 MB each.
    """
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower(), ""
    )
    failures = []
    for suffix in ("", "-baseline", "-musl", "-baseline-musl"):
        name = f"opencode-{platform.system().lower()}-{machine}{suffix}"
        npm_install(npm, f"{name}@{version}", prefix)
        binary = Path("node_modules", name, "bin", "opencode")
        probe = subprocess.run([prefix / binary, "--version"], capture_output=True, timeout=120, check=False)
        if probe.returncode == 0:
            (prefix / "opencode").symlink_to(binary)
            return
        failures.append(f"{name} ended with {probe.returncode}")
    raise RuntimeError(f"no binary of OpenCode {version} runs here: {', '.join(failures)}")


class OpenCode:
    """One `opencode serve` process and its API. Use it as a context manager; `data_dir` is what the daemon watches."""

    def __init__(self, binary: Path, root: Path, model_url: str, *, takes_images: bool = False) -> None:
        self.binary, self.root = binary, root
        self.data_dir = root / "data" / "opencode"
        self.log_path = root / "opencode.log"
        self._directories: dict[str, str] = {}
        for name in ("home", "data", "config/opencode", "cache", "state", "tmp"):
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "config" / "opencode" / "opencode.json").write_text(
            json.dumps(_settings(model_url, takes_images=takes_images))
        )
        _say_plugin_is_installed(root / "config" / "opencode", binary)
        (root / "models.json").write_text("{}")

    def __enter__(self) -> Self:
        port = free_port()
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--hostname", "127.0.0.1", "--port", str(port)],
                cwd=self.root / "home",
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300, trust_env=False)
        try:
            self._wait_until_healthy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, as an out-of-memory killer would: records stay as they were at that moment."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        self._http.close()
        if self.process.returncode is not None:
            return  # its number may be that of another process by now
        self._signal(number)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait(timeout=120)

    def _signal(self, number: signal.Signals) -> None:
        # The whole group, so that a command of its bash tool does not outlive it.
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def environment(self) -> dict[str, str]:
        """Nothing of the caller's but the search path: no home, no credentials, no settings."""
        places = {f"XDG_{kind.upper()}_HOME": str(self.root / kind) for kind in ("data", "config", "cache", "state")}
        disabled = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "SHARE", "DEFAULT_PLUGINS", "CLAUDE_CODE")
        home = self.root / "home"
        return {
            "PATH": os.environ["PATH"],
            # OpenCode 1.18 takes its directory from here rather than from the process.
            "PWD": str(home),
            "HOME": str(home),
            "TMPDIR": str(self.root / "tmp"),  # it leaves the libraries there that it loads
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
            # What it would fetch is refused at once.
            "npm_config_offline": "true",
            # In place of the models of all providers that it brings along, which take 1.18 more than a second to read.
            "OPENCODE_MODELS_PATH": str(self.root / "models.json"),
            **places,
            **{f"OPENCODE_DISABLE_{name}": "1" for name in disabled},
        }

    def _wait_until_healthy(self, timeout_s: float = 120) -> None:
        # From 1.15 on, what is asked before it says this is left without an answer.
        up = f"listening on http://127.0.0.1:{self._http.base_url.port}\n"
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if up in self.log_path.read_text(errors="replace"):
                self._http.get("/global/health").raise_for_status()
                return
            time.sleep(0.02)
        raise RuntimeError(f"opencode serve did not come up:\n{self.log_path.read_text(errors='replace')[-2000:]}")

    def _call(self, method: str, path: str, directory: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, params={"directory": directory}, json=body)
        if not answer.is_success:
            raise RuntimeError(f"OpenCode: {method} {path}: {answer.status_code} {answer.text[:1000]}")
        return answer.json() if answer.content else None

    def _session(self, method: str, session: str, verb: str = "", body: Any = None) -> Any:
        return self._call(method, f"/session/{session}{verb}", self._directories[session], body)

    def create_session(self, directory: Path, title: str = "") -> str:
        """Without a title OpenCode asks the model for one after the first prompt."""
        session = self._call("POST", "/session", str(directory), {"title": title} if title else {})
        self._directories[session["id"]] = str(directory)
        return str(session["id"])

    def adopt(self, session: str, directory: str) -> None:
        """Go on with a session that another process over the same store has made in this directory."""
        self._directories[session] = directory

    def prompt(self, session: str, text: str) -> dict[str, Any]:
        """Say `text` and wait until the turn is finished; returns the last assistant message with its parts."""
        body = {"model": {"providerID": PROVIDER, "modelID": MODEL}, "parts": [{"type": "text", "text": text}]}
        answer: dict[str, Any] = self._session("POST", session, "/message", body)
        return answer

    def prompt_async(self, session: str, text: str) -> None:
        """Say `text` and do not wait."""
        body = {"model": {"providerID": PROVIDER, "modelID": MODEL}, "parts": [{"type": "text", "text": text}]}
        self._session("POST", session, "/prompt_async", body)

    def messages(self, session: str) -> list[dict[str, Any]]:
        """``[{"info": message, "parts": [part]}]``, oldest first."""
        answer: list[dict[str, Any]] = self._session("GET", session, "/message")
        return answer

    def revert(self, session: str, message: str) -> None:
        """Undo this user message and what came after it, files included; the next prompt makes it final."""
        self._session("POST", session, "/revert", {"messageID": message})

    def unrevert(self, session: str) -> None:
        self._session("POST", session, "/unrevert", {})

    def abort(self, session: str) -> None:
        self._session("POST", session, "/abort", {})

    def rename(self, session: str, title: str) -> None:
        self._session("PATCH", session, "", {"title": title})

    def delete(self, session: str) -> None:
        self._session("DELETE", session)


def _say_plugin_is_installed(directory: Path, binary: Path) -> None:
    """As after the first start: every version would otherwise install its plugin package into a fresh directory."""
    version = json.loads((binary.parents[1] / "package.json").read_bytes())["version"]
    needed = {"dependencies": {"@opencode-ai/plugin": version}}
    (directory / "node_modules").mkdir(exist_ok=True)
    (directory / "package.json").write_text(json.dumps(needed))
    (directory / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": {"": needed}}))


def _settings(model_url: str, *, takes_images: bool) -> dict[str, Any]:
    """OpenCode's own configuration: the scripted provider and no other, everything allowed, nothing fetched."""
    model: dict[str, Any] = {
        "name": "Scripted",
        "reasoning": True,
        "tool_call": True,
        "temperature": True,
        "limit": {"context": 2_000_000, "output": 8192},
    }
    if takes_images:
        model |= {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": model_url, "apiKey": "none"},
        "models": {MODEL: model},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "lsp": False,
        "formatter": False,
        "permission": dict.fromkeys(("edit", "bash", "external_directory"), "allow"),
        "enabled_providers": [PROVIDER],
        "provider": {PROVIDER: provider},
        "model": f"{PROVIDER}/{MODEL}",
        "small_model": f"{PROVIDER}/{MODEL}",
    }


def make_project(directory: Path, files: dict[str, str]) -> Path:
    """A git repository with one commit of these files, as OpenCode needs to take snapshots."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*who, "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", "-C", str(directory), *arguments], check=True, capture_output=True)
    return directory
