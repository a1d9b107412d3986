"""Sentence-transformers in ONNX form that are small enough to make in a test: the vector of a token is a row of a table.

The network is written as protobuf, of which it needs a few fields (onnx.proto), so no further package is needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "query:", "passage:", "red", "green", "blue", "warm", "cold", "Q", "P")
DIMS = 4
TABLE = np.random.default_rng(5).standard_normal((len(WORDS), DIMS)).astype(np.float32)
_FLOAT, _INT64, _INT32 = 1, 7, 6


def rows(*words: str) -> np.ndarray[Any, Any]:
    """The vectors of these tokens."""
    return TABLE[[WORDS.index(word) for word in words]]


def tiny_model(
    directory: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    output: str = "last_hidden_state",
    model: str = "model.onnx",
    int32: bool = False,
    configs: Mapping[str, Any] | None = None,
    words: Mapping[str, np.ndarray[Any, Any]] | None = None,
) -> Path:
    """Write the model, its tokenizer and these JSON files (path -> content). `output` ``sentence_embedding`` has a mean
    over the tokens inside, ``token_type_ids`` and ``position_ids`` have an effect where they are among the inputs.
    `words`: the vector of each word; WORDS and TABLE if there are none.
    """
    names = WORDS if words is None else ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *words)
    table = TABLE
    if words is not None:
        table = np.stack([*[np.mean([*words.values()], axis=0)] * 4, *words.values()]).astype(np.float32)
    path = directory / model
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_network(table, inputs, output, _INT32 if int32 else _INT64))
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(str(directory / "tokenizer.json"))
    for name, content in (configs or {}).items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(json.dumps(content))
    return directory


def safetensors(path: Path, tensors: Mapping[str, np.ndarray[Any, Any]], dtype: str = "F32") -> None:
    """Write a safetensors file; `dtype` is F32, F16 or BF16."""
    header, body = {}, b""
    for name, tensor in tensors.items():
        plain = np.ascontiguousarray(tensor, dtype=np.float32)
        raw = {
            "F32": plain.tobytes(),
            "F16": plain.astype(np.float16).tobytes(),
            "BF16": (plain.view(np.uint32) >> 16).astype(np.uint16).tobytes(),
        }[dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    head = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)


def _network(table: np.ndarray[Any, Any], inputs: Sequence[str], output: str, integer: int) -> bytes:
    """Gather rows of the table by id, add what types and positions give, and for a whole vector take the mean."""
    tables = {"input_ids": table, "token_type_ids": 0.5 + 0 * table, "position_ids": np.arange(400.0).reshape(100, 4)}
    used = [name for name in inputs if name in tables]
    nodes = [_node("Gather", [f"{name}_table", name], f"{name}_rows") for name in used]
    last = f"{used[0]}_rows"
    for name in used[1:]:
        nodes.append(_node("Add", [last, f"{name}_rows"], f"{name}_sum"))
        last = f"{name}_sum"
    if output == "sentence_embedding":
        axes = _bytes(1, b"axes") + _int(8, 1) + _int(20, 7)
        nodes.append(_node("ReduceMean", [last], output, _bytes(5, axes) + _bytes(5, _keepdims())))
    else:
        nodes.append(_node("Identity", [last], output))
    rank = 2 if output == "sentence_embedding" else 3
    graph = b"".join(_bytes(1, node) for node in nodes) + _bytes(2, b"tiny")
    graph += b"".join(_bytes(5, _tensor(f"{name}_table", tables[name])) for name in used)
    graph += b"".join(_bytes(11, _value(name, integer, 2)) for name in inputs)
    graph += _bytes(12, _value(output, _FLOAT, rank))
    return _int(1, 8) + _bytes(8, _bytes(1, b"") + _int(2, 13)) + _bytes(7, graph)


def _keepdims() -> bytes:
    return _bytes(1, b"keepdims") + _int(3, 0) + _int(20, 2)


def _node(kind: str, inputs: Sequence[str], output: str, attributes: bytes = b"") -> bytes:
    named = b"".join(_bytes(1, name.encode()) for name in inputs)
    return named + _bytes(2, output.encode()) + _bytes(4, kind.encode()) + attributes


def _tensor(name: str, values: np.ndarray[Any, Any]) -> bytes:
    sizes = b"".join(_int(1, size) for size in values.shape)
    return sizes + _int(2, _FLOAT) + _bytes(8, name.encode()) + _bytes(9, values.astype("<f4").tobytes())


def _value(name: str, type_: int, rank: int) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, f"{name}_{axis}".encode())) for axis in range(rank))
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _int(1, type_) + _bytes(2, shape)))


def _varint(number: int) -> bytes:
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
