"""A sentence-transformer in ONNX form in a directory, with the settings from its configuration files.

sentence-transformers writes these files, and models on the Hugging Face hub have them. Without them we use the settings
of the built-in model: mean of the tokens, no prefixes, 256 tokens.

* ``modules.json`` names the steps after the network: pooling, dense layers, length 1
* ``1_Pooling/config.json`` says how the vectors of the tokens become one
* ``config_sentence_transformers.json`` has the prefixes (``prompts``) and ``truncate_dim``
* ``sentence_bert_config.json`` or ``tokenizer_config.json`` has the number of tokens that the model takes

If the network outputs ``sentence_embedding``, it includes these steps, and we do not pool again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from daemon.embed.known_models import known
from daemon.errors import ModelUnavailable
from daemon.model import Json, Vector

Array = np.ndarray[Any, Any]

TOKENS = 256
_MOST_TOKENS = 8192
"""A longer text takes minutes and gigabytes; chunks are far shorter."""
_MODELS = ("model.onnx", "model_quantized.onnx", "model_int8.onnx", "model_uint8.onnx", "model_fp16.onnx")
_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""In the order in which sentence-transformers concatenates them."""
_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer after the pooling; `activation` is ``Identity``, ``Tanh`` or ``ReLU``."""

    weight: Array
    bias: Array | None
    activation: str

    def __call__(self, vector: Array) -> Array:
        """The output vector."""
        output = self.weight @ vector + (0 if self.bias is None else self.bias)
        return np.asarray(_ACTIVATIONS[self.activation](output))


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "Identity": lambda vector: vector,
    "Tanh": np.tanh,
    "ReLU": lambda vector: np.maximum(vector, 0),
}


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """The files and settings of a model. `truncated_dims` 0: vectors are not truncated."""

    model: Path
    tokenizer: Path
    poolings: tuple[str, ...] = ("mean",)
    tokens: int = TOKENS
    query_prefix: str = ""
    passage_prefix: str = ""
    pools_prefix: bool = True
    lowercase: bool = False
    truncated_dims: int = 0
    dense: tuple[Dense, ...] = field(default=(), repr=False)
    files: tuple[Path, ...] = ()
    """Further files that change vectors: weights beside the model, dense layers."""

    @property
    def settings(self) -> str:
        """The settings that change vectors; "" if all are those of the built-in model."""
        usual = SentenceModel(self.model, self.tokenizer)
        names = (
            "poolings", "tokens", "query_prefix", "passage_prefix", "pools_prefix", "lowercase", "truncated_dims",
        )  # fmt: skip
        values = {name: getattr(self, name) for name in names if getattr(self, name) != getattr(usual, name)}
        return json.dumps(values, sort_keys=True) if values else ""

    def digest(self) -> str:
        """A digest of everything that changes vectors.

        Raises:
            ModelUnavailable: a file cannot be read.
        """
        parts = [file_digest(path) for path in (self.model, self.tokenizer, *self.files)]
        return sha256(("".join(parts) + self.settings).encode()).hexdigest()

    def pooled(self, states: Array, mask: Array, prefix_tokens: int) -> Array:
        """Pool the vectors of tokens (tokens x dims); the first `prefix_tokens` belong to the prefix."""
        mask = mask.astype(np.float32)
        if not self.pools_prefix:
            mask[:prefix_tokens] = 0
        return np.concatenate([_pool(pooling, states, mask) for pooling in self.poolings])

    def finished(self, vector: Array) -> Vector:
        """The vector of a text: truncated, and of length 1."""
        vector = vector.astype(np.float32)
        if self.truncated_dims:
            vector = vector[: self.truncated_dims]
        return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), dtype=np.float32)


def sentence_model(directory: Path) -> SentenceModel:
    """The model in this directory.

    Raises:
        ModelUnavailable: files are missing or damaged, or it has a step that we do not support.
    """
    model, tokenizer = _files(directory)
    try:
        return _configured(directory, model, tokenizer)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelUnavailable(
            f"{directory}: the embedding model's configuration has an unexpected form: {error!r}; copy its files again"
        ) from None


def _configured(directory: Path, model: Path, tokenizer: Path) -> SentenceModel:
    about = _json(directory / "config_sentence_transformers.json")
    poolings, pools_prefix, layers = _modules(directory)
    query, passage = _prefixes(directory, about)
    beside = sorted(path for path in model.parent.glob(f"{model.name}[_.]data*") if path.is_file())
    return SentenceModel(
        model=model,
        tokenizer=tokenizer,
        poolings=poolings,
        tokens=_tokens(directory),
        query_prefix=query,
        passage_prefix=passage,
        pools_prefix=pools_prefix,
        lowercase=_json(directory / "sentence_bert_config.json").get("do_lower_case") is True,
        truncated_dims=about.get("truncate_dim") or 0,
        dense=tuple(_dense(layer) for layer in layers),
        files=(*beside, *(path for layer in layers for path in (layer / "config.json", layer / "model.safetensors"))),
    )


def file_digest(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        ModelUnavailable: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            digest = sha256()
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise ModelUnavailable(f"{path}: the embedding model's file cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def preferred(names: Collection[str]) -> str | None:
    """The network among these files of a model, as paths in its directory; None if there is none."""
    named = [folder + name for name in _MODELS for folder in ("", "onnx/")]
    custom = sorted(name for name in names if re.fullmatch(r"(onnx/)?[^/]+\.onnx", name))
    return next((name for name in (*named, *custom) if name in names), None)


def _files(directory: Path) -> tuple[Path, Path]:
    folders = (directory, directory / "onnx")
    networks = [path for folder in folders for path in folder.glob("*.onnx") if path.is_file()]
    name = preferred([path.relative_to(directory).as_posix() for path in networks])
    model = None if name is None else directory / name
    tokenizer = next((path for folder in folders if (path := folder / "tokenizer.json").is_file()), None)
    if model is None or tokenizer is None:
        missing = "tokenizer.json" if model else "model.onnx (or onnx/model.onnx)"
        raise ModelUnavailable(
            f"embedding.model_dir: {directory} has no {missing}; put it there, or leave the key empty"
        )
    return model, tokenizer


def _json(path: Path) -> Json:
    """A configuration file; empty if it is missing."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"{path}: the embedding model's configuration cannot be read: {error}; copy the model's files again"
        ) from None
    return content if isinstance(content, dict) else {"": content}  # modules.json is a list


def _modules(directory: Path) -> tuple[tuple[str, ...], bool, list[Path]]:
    """(poolings, whether prefixes are pooled, folders of dense layers)."""
    about = _json(directory / "modules.json")
    steps = about[""] if about else [{"type": "Pooling", "path": "1_Pooling"}]
    poolings: tuple[str, ...] = ("mean",)
    pools_prefix, is_normal = True, False
    layers: list[Path] = []
    for step in steps:
        kind, place = str(step.get("type", "")).rpartition(".")[2], directory / str(step.get("path", ""))
        if kind == "Pooling":
            poolings, pools_prefix = _pooling(place / "config.json")
        elif kind == "Dense" and not is_normal:
            layers.append(place)
        elif kind == "Normalize":
            is_normal = True
        elif kind != "Transformer":
            raise ModelUnavailable(
                f"{directory / 'modules.json'}: the step {kind} is not supported there (Transformer, Pooling, Dense "
                "and Normalize are, in this order); choose another model, or export this one with all its steps and "
                "take modules.json away"
            )
    return poolings, pools_prefix, layers


def _pooling(path: Path) -> tuple[tuple[str, ...], bool]:
    about = _json(path)
    poolings = tuple(name for key, name in _POOLINGS.items() if about.get(key))
    mode = about.get("pooling_mode")
    poolings = (mode,) if isinstance(mode, str) else tuple(mode) if isinstance(mode, list) else poolings
    unknown = [name for name in poolings if name not in _POOLINGS.values()]
    if unknown:
        raise ModelUnavailable(
            f"{path}: the pooling {', '.join(map(str, unknown))} is not supported; choose another model"
        )
    return poolings or ("mean",), about.get("include_prompt") is not False


def _prefixes(directory: Path, about: Json) -> tuple[str, str]:
    """The prefixes of questions and passages, found as sentence-transformers does."""
    prompts = about.get("prompts") or {}
    usual = prompts.get(about.get("default_prompt_name") or "", "")
    query = prompts.get("query", usual)
    passage = next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), usual)
    if not query and not passage:
        names = (str(_json(directory / "config.json").get("_name_or_path", "")), directory.name)
        model = next((model for name in names if (model := known(name)) is not None), None)
        return (model.query_prefix, model.passage_prefix) if model is not None else ("", "")
    return query, passage


def _tokens(directory: Path) -> int:
    own = _json(directory / "sentence_bert_config.json").get("max_seq_length")
    tokens = own or _json(directory / "tokenizer_config.json").get("model_max_length") or TOKENS
    return min(int(tokens), _MOST_TOKENS)


def _dense(folder: Path) -> Dense:
    activation = str(_json(folder / "config.json").get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = activation.rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise ModelUnavailable(
            f"{folder / 'config.json'}: the activation {activation} is not supported; choose another model"
        )
    tensors = _tensors(folder / "model.safetensors")
    if "linear.weight" not in tensors:
        raise ModelUnavailable(f"{folder / 'model.safetensors'} has no linear.weight; copy the model's files again")
    return Dense(tensors["linear.weight"], tensors.get("linear.bias"), activation)


def _tensors(path: Path) -> dict[str, Array]:
    """The content of a safetensors file: a length, a header in JSON, and the numbers."""
    try:
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + size])
        header.pop("__metadata__", None)
        tensors: dict[str, Array] = {}
        for name, about in header.items():
            start, end = (8 + size + offset for offset in about["data_offsets"])
            numbers: Array = np.frombuffer(raw[start:end], dtype=_TYPES[about["dtype"]])
            if about["dtype"] == "BF16":  # the upper half of a float32
                numbers = (numbers.astype("<u4") << 16).view("<f4")
            tensors[name] = numbers.astype(np.float32).reshape(about["shape"])
    except FileNotFoundError:
        raise ModelUnavailable(
            f"{path} is missing: the model has a dense layer, whose weights are read from there; copy that file, too"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnavailable(f"{path}: not a file of weights: {error!r}; copy the model's files again") from None
    return tensors


def _pool(pooling: str, states: Array, mask: Array) -> Array:
    if not mask.any():  # a text that consists of its prefix
        mask = np.ones_like(mask)
    counted = np.flatnonzero(mask)
    if pooling == "cls":
        return np.asarray(states[0])
    if pooling == "lasttoken":
        return np.asarray(states[counted[-1]])
    if pooling == "max":
        return np.asarray(states[counted].max(axis=0))
    weights = mask * np.arange(1, len(mask) + 1) if pooling == "weightedmean" else mask
    total = float(weights.sum())
    summed = (states * weights[:, None]).sum(axis=0)
    return np.asarray(summed / max(total**0.5 if pooling == "mean_sqrt_len_tokens" else total, 1e-9))
