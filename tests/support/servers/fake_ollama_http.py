"""How the stand-in for an Ollama server answers over HTTP; what it is told to answer stands in fake_ollama."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from daemon.embed.calibration import PAIRS

NOW = "2026-01-01T00:00:00Z"
_DURATION = re.compile(r"-?\d+(\.\d+)?(ns|us|ms|s|m|h)")
_PIECES = re.compile(r"[A-Za-z_]{1,8}|[0-9]{1,3}|[^\x00-\x7f]|[^\w\s]{1,2}")
_PIECE_CHARS = 24
_MOST_PIECES = 2000


@dataclass(frozen=True)
class Turn:
    """One scripted reply, with what may be odd about it."""

    message: Any = None
    """The assistant's message; None: an empty one."""
    done_reason: str = "stop"
    """O7: ``length`` for a reply that was cut off."""
    prompt_tokens: int | None = -1
    """O3: prompt_eval_count; -1: what was really read, None: absent, as in Ollama up to 0.2 for a cached prompt."""
    reply_tokens: int | None = -1
    error: str = ""
    """O7: in the middle of the stream, after the message, comes this error instead of the end."""
    cut: bool = False
    """O6: the connection closes after the message: no last line."""
    raw: bytes | None = None
    """O6: these bytes are the whole body of a 200, whatever they are."""


def vector(text: str, dims: int) -> list[float]:
    """A unit vector of hashed words; the same words in any order give the same vector.

    A question that models are calibrated with has the words of its answer, too: a model must tell what belongs together.
    """
    values = [0.0] * dims
    answer = next((answer for question, answer in PAIRS if text.endswith(question)), "")
    for word in f"{text} {answer}".lower().split() or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        values[int.from_bytes(digest[:4], "little") % dims] += 1.0 if digest[4] & 1 else -1.0
    values[0] += 0.01
    norm = math.sqrt(sum(value * value for value in values))
    return [value / norm for value in values]


def tokens(text: str) -> int:
    """How many tokens this server makes of a text."""
    return len(_PIECES.findall(text))


def inputs(body: Any) -> list[str]:
    given = body.get("input", [])
    return [given] if isinstance(given, str) else list(given)


def _seen(messages: list[Any], limit: int) -> list[Any]:
    """What is left of a conversation when its front is dropped until `limit` characters fit; the last message stays."""
    kept = list(messages)
    while limit and len(kept) > 1 and sum(len(message.get("content") or "") for message in kept) > limit:
        kept.pop(0)
    if limit and kept and len(kept[0].get("content") or "") > limit:
        kept[0] = {**kept[0], "content": kept[0]["content"][-limit:]}
    return kept


def _prompt(body: Any) -> str:
    """What a template makes of a request, about."""
    told = [json.dumps(body["tools"], ensure_ascii=False)] if body.get("tools") else []
    for message in body["messages"]:
        calls = json.dumps(message["tool_calls"], ensure_ascii=False) if message.get("tool_calls") else ""
        told.append(f"{message.get('role')}: {message.get('content') or ''}{calls}")
    return "\n".join(told)


def _pieces(message: Any) -> list[Any]:
    """A message in the pieces that a stream has it in: thinking, then content, then whatever else."""
    if not isinstance(message, dict):
        return [message]
    found: list[Any] = []
    for key in ("thinking", "content"):
        text = message.get(key)
        if isinstance(text, str) and text:
            size = max(_PIECE_CHARS, len(text) // _MOST_PIECES)
            parts = [text[at : at + size] for at in range(0, len(text), size)]
            found += [{"role": "assistant", "content": "", key: part} for part in parts]
        elif text is not None and not isinstance(text, str):
            found.append({"role": "assistant", key: text})
    rest = {key: value for key, value in message.items() if key not in {"thinking", "content", "role"}}
    return found + ([{"role": "assistant", "content": "", **rest}] if rest or not found else [])


class Handler(BaseHTTPRequestHandler):
    fake: Any  # the FakeOllama that it answers for
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes

    def setup(self) -> None:
        super().setup()
        self.fake.connections.add(self.connection)

    def finish(self) -> None:
        self.fake.connections.discard(self.connection)
        super().finish()

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        fake = self.fake
        fake.requests.append((self.path, None))
        models = [
            {
                "name": name,
                "model": name,
                "modified_at": NOW,
                "size": 1000,
                "digest": digest,
                "details": {"family": "bert"},
            }
            for name, digest in fake.models.items()
        ]
        loaded = [
            {**entry, "expires_at": NOW, "size_vram": 1000, "context_length": fake.length(str(entry["name"]))}
            for entry in models
            if entry["name"] in fake.loaded
        ]
        answers = {
            "/api/version": {"version": "0.33.0"},
            "/api/tags": {"models": models},
            "/api/ps": {"models": loaded},
        }
        if fake.broken and fake.broken_path == self.path:
            self.fail(fake.broken, fake.broken_reason)
        elif self.path in answers:
            self.answer(answers[self.path])
        elif self.path == "/":
            self.send(200, b"Ollama is running", "text/plain")
        else:
            self.fail(404, "not found")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        fake = self.fake
        fake.requests.append((self.path, body))
        routes = {"/api/embed": self.embed, "/api/show": self.show, "/api/chat": self.chat, "/api/generate": self.chat}
        with fake.counted():
            begun = time.monotonic()
            while (left := begun + fake.delay_s - time.monotonic()) > 0:  # a test may end the delay
                time.sleep(min(left, 0.05))
            model = body.get("model", "")
            if self.path not in routes:
                self.fail(404, "not found")
            elif not fake.has(model):
                self.fail(404, f'model "{model}" not found, try pulling it first')
            elif fake.broken and (fake.broken_path == self.path or (not fake.broken_path and self.path != "/api/show")):
                self.fail(fake.broken, fake.broken_reason)
            elif isinstance(alive := body.get("keep_alive", 1), str) and not _DURATION.fullmatch(alive):
                self.fail(400, f'time: missing unit in duration "{alive}"')
            else:
                if self.path != "/api/show":
                    fake.loaded.add(model if model in fake.models else f"{model}:latest")
                routes[self.path](body)

    def embed(self, body: Any) -> None:
        fake, texts = self.fake, inputs(body)
        for text in texts:
            saved = fake.nan_unless_suffix and text.endswith(fake.nan_unless_suffix)
            if fake.nan_mark and fake.nan_mark in text and not saved:
                self.fail(500, "failed to encode response: json: unsupported value: NaN")
                return
            if fake.context_chars and len(text) > fake.context_chars:
                self.fail(400, "the input length exceeds the context length")
                return
        vectors: Any = [vector(text, fake.dims) if text.strip() else [] for text in texts]
        if fake.vector_shape is not ...:
            vectors = [fake.vector_shape for _ in texts]
        answer = {"model": body["model"], "embeddings": vectors, "total_duration": 1, "load_duration": 1}
        if fake.empty_shape == "absent":
            del answer["embeddings"]
        elif fake.empty_shape is not ...:
            answer["embeddings"] = fake.empty_shape
        self.answer(answer)

    def show(self, body: Any) -> None:
        info = {"bert.context_length": self.fake.length(body["model"]), "bert.embedding_length": self.fake.dims}
        answer: dict[str, Any] = {
            "modelfile": "",
            "template": "{{ .Prompt }}",
            "modified_at": NOW,
            "details": {"family": "bert", "parameter_size": "1M", "quantization_level": "F32"},
            "model_info": info,
        }
        capabilities = self.fake.can(body["model"])
        if capabilities is not None:
            answer["capabilities"] = capabilities
        self.answer(answer)

    def chat(self, body: Any) -> None:
        fake = self.fake
        if self.path == "/api/generate":
            body = {**body, "messages": [{"role": "user", "content": body.get("prompt", "")}]}
        if (refusal := self.refusal(body)) is not None:
            self.fail(400, refusal)
            return
        body = {**body, "messages": _seen(body["messages"], fake.truncate_chat_chars)}
        turn = fake.next_turn(body)
        if isinstance(turn, tuple):
            self.fail(*turn)
        elif turn.raw is not None:
            self.send(200, turn.raw, "application/x-ndjson", length=False)
        else:
            self.reply(body, turn)

    def refusal(self, body: Any) -> str | None:
        fake, model = self.fake, body["model"]
        can = fake.can(model)
        if body.get("tools") and (fake.refuses_tools or (can is not None and "tools" not in can)):
            return f"registry.ollama.ai/library/{model} does not support tools"
        if body.get("think") and can is not None and "thinking" not in can:
            return f'"{model}" does not support thinking'
        size = sum(len(message.get("content") or "") for message in body["messages"])
        limit = fake.truncate_chat_chars
        if fake.honours_truncate and body.get("truncate") is False and limit and size > limit:
            return f"prompt too long; exceeded max context length by {size - limit} tokens"
        return None

    def reply(self, body: Any, turn: Turn) -> None:
        is_chat = self.path == "/api/chat"
        message = {"role": "assistant", "content": ""} if turn.message is None else turn.message
        prompt = _prompt(body)
        end = {"model": body["model"], "created_at": NOW, "done": True, "done_reason": turn.done_reason}
        end |= {"total_duration": 1, "load_duration": 1, "prompt_eval_duration": 1, "eval_duration": 1}
        counted = self.fake.evaluated(prompt) if turn.prompt_tokens == -1 else turn.prompt_tokens
        room = (body.get("options") or {}).get("num_predict") or 1_000_000
        made = min(tokens(json.dumps(message)), room) if turn.reply_tokens == -1 else turn.reply_tokens
        end |= {"prompt_eval_count": counted} if counted is not None else {}
        end |= {"eval_count": made} if made is not None else {}

        def shown(part: Any) -> dict[str, Any]:
            return {"message": part} if is_chat else {"response": part.get("content", "")}

        if not body.get("stream", True):
            self.answer({**end, **shown(message)})
            return
        line = {"model": body["model"], "created_at": NOW, "done": False}
        lines: list[Any] = [{**line, **shown(part)} for part in _pieces(message)]
        if turn.error:
            lines.append({"error": turn.error})
        elif not turn.cut:
            lines.append({**end, **shown({"role": "assistant", "content": ""})})
        data = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
        self.send(200, data, "application/x-ndjson", cut=turn.cut)

    def answer(self, value: Any) -> None:
        self.send(200, json.dumps(value).encode(), "application/json")

    def fail(self, status: int, reason: str) -> None:
        self.send(status, json.dumps({"error": reason}).encode(), "application/json")

    def send(self, status: int, data: bytes, kind: str, *, length: bool = True, cut: bool = False) -> None:
        """Without a length, the data ends where the connection does; a `cut` one promises more than it sends."""
        slow = self.fake.trickle_s if self.path == "/api/chat" else 0.0
        self.close_connection = self.close_connection or cut or not length
        head = [
            f"HTTP/1.1 {status} -",
            f"Content-Type: {kind}",
            f"Connection: {'close' if cut or not length else 'keep-alive'}",
        ]
        head += [f"Content-Length: {len(data) + cut}"] if length else []
        try:
            for block, pause in ((_lines(*head), slow if self.fake.trickle_head else 0.0), (data, slow)):
                for at in range(0, len(block), 1 if pause else len(block)):
                    self.wfile.write(block[at : at + 1] if pause else block)
                    time.sleep(pause)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up waiting: that is what a timeout test wants


def _lines(*head: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (*head, "")).encode()
