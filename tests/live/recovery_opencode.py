"""An OpenCode for file work: a second model that is given apply_patch, attachments, and an undo of a part of a turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.live.opencode import PROVIDER, OpenCode
from tests.live.scripted_model import MODEL

PATCHING_MODEL = "gpt-5-scripted"
"""OpenCode offers models of such a name apply_patch in place of edit and write."""


class Workshop(OpenCode):
    """`opencode serve`, asked for what people do with files."""

    def __init__(self, binary: Path, root: Path, model_url: str) -> None:
        super().__init__(binary, root, model_url)
        path = root / "config" / "opencode" / "opencode.json"
        settings = json.loads(path.read_text())
        models = settings["provider"][PROVIDER]["models"]
        models[PATCHING_MODEL] = models[MODEL] | {"name": "Patching"}
        path.write_text(json.dumps(settings))

    def say(self, session: str, text: str, *, model: str = MODEL, files: Sequence[Path] = ()) -> dict[str, Any]:
        """A turn with this model and these files attached, to its end."""
        attached = [{"type": "file", "mime": "text/plain", "filename": f.name, "url": f.as_uri()} for f in files]
        body = {
            "model": {"providerID": PROVIDER, "modelID": model},
            "parts": [{"type": "text", "text": text}, *attached],
        }
        answer: dict[str, Any] = self._session("POST", session, "/message", body)
        return answer

    def say_only(self, session: str, text: str) -> None:
        """A prompt that the model is not asked to answer: no step follows, and no tree is taken."""
        model = {"providerID": PROVIDER, "modelID": MODEL}
        body = {"model": model, "parts": [{"type": "text", "text": text}], "noReply": True}
        self._session("POST", session, "/message", body)

    def prompts(self, session: str) -> list[str]:
        """The ids of what the person said, oldest first."""
        return [m["info"]["id"] for m in self.messages(session) if m["info"]["role"] == "user"]

    def calls(self, session: str) -> list[dict[str, Any]]:
        """Every tool part of the session in order."""
        return [part for m in self.messages(session) for part in m["parts"] if part["type"] == "tool"]

    def record(self, session: str) -> dict[str, Any]:
        """The session's own record."""
        answer: dict[str, Any] = self._session("GET", session)
        return answer

    def revert_part(self, session: str, message: str, part: str) -> None:
        """Undo this part and what came after it."""
        self._session("POST", session, "/revert", {"messageID": message, "partID": part})
