"""Any sentence-transformer in ONNX form: what its configuration files say is what happens to its vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daemon.embed.builtin import Builtin
from daemon.errors import BadInput, ModelUnavailable
from tests.support.tiny_model import DIMS, rows, safetensors, tiny_model

TEXT = "red green"
TOKENS = rows("[CLS]", "red", "green", "[SEP]")
NUMBERS = np.array([1, 2, 3, 4], dtype=np.float32)[:, None]

STEPS = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
    {"idx": 3, "name": "3", "path": "3_Normalize", "type": "sentence_transformers.models.Normalize"},
]
POOLING = {"modules.json": [STEPS[0], STEPS[1], STEPS[3]]}
DENSE = {"modules.json": STEPS}


def unit(vector: Any) -> np.ndarray[Any, Any]:
    return np.asarray(vector / np.linalg.norm(vector))


def passage(directory: Path, text: str = TEXT) -> np.ndarray[Any, Any]:
    (vector,) = Builtin(directory).embed([text])
    assert not isinstance(vector, BadInput), vector
    return vector


def question(directory: Path, text: str = TEXT) -> np.ndarray[Any, Any]:
    vector = Builtin(directory).embed_query(text)
    assert not isinstance(vector, BadInput), vector
    return vector


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, TOKENS.mean(axis=0)),
        ({"pooling_mode_cls_token": True}, TOKENS[0]),
        ({"pooling_mode_lasttoken": True}, TOKENS[-1]),
        ({"pooling_mode_max_tokens": True}, TOKENS.max(axis=0)),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, TOKENS.sum(axis=0) / 2),
        ({"pooling_mode_weightedmean_tokens": True}, (TOKENS * NUMBERS).sum(axis=0)),
        ({"pooling_mode": "cls"}, TOKENS[0]),
        (
            {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
            np.concatenate([TOKENS[0], TOKENS.mean(axis=0)]),
        ),
        ({}, TOKENS.mean(axis=0)),
    ],
)
def test_tokens_are_pooled_as_the_model_says(tmp_path: Path, pooling: Any, expected: Any) -> None:
    made = tiny_model(tmp_path, configs={**POOLING, "1_Pooling/config.json": pooling})
    assert passage(made) == pytest.approx(unit(expected), abs=1e-6)
    assert Builtin(made).dims == len(expected)


@pytest.mark.parametrize(
    ("inputs", "added"),
    [
        (("input_ids",), 0),
        (("input_ids", "attention_mask"), 0),
        (("input_ids", "attention_mask", "token_type_ids"), 0.5),
        (("input_ids", "position_ids"), np.arange(16).reshape(4, 4)),
    ],
)
@pytest.mark.parametrize("int32", [False, True])
def test_the_network_gets_the_inputs_it_asks_for(tmp_path: Path, inputs: Any, added: Any, *, int32: bool) -> None:
    made = tiny_model(tmp_path, inputs=inputs, int32=int32)
    assert passage(made) == pytest.approx(unit((TOKENS + added).mean(axis=0)), abs=1e-6)


def test_a_vector_of_the_whole_text_is_taken_as_it_is(tmp_path: Path) -> None:
    """The network has all steps inside, so that the pooling and the dense layer are not done again."""
    made = tiny_model(tmp_path, output="sentence_embedding", configs={"modules.json": [STEPS[0], STEPS[1]]})
    (made / "1_Pooling").mkdir()
    (made / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    assert passage(made) == pytest.approx(unit(TOKENS.mean(axis=0)), abs=1e-6)


PROMPTS = {
    "both": ({"prompts": {"query": "query: ", "passage": "passage: "}}, "query:", "passage:"),
    "document": ({"prompts": {"query": "Q ", "document": "P "}}, "Q", "P"),
    "question only": ({"prompts": {"query": "Q "}}, "Q", ""),
    "one for all": ({"prompts": {"any": "P "}, "default_prompt_name": "any"}, "P", "P"),
    "none": ({"prompts": {}}, "", ""),
    "null": ({"prompts": None, "default_prompt_name": None}, "", ""),
}


@pytest.mark.parametrize("case", PROMPTS)
def test_questions_and_passages_get_their_prefixes(tmp_path: Path, case: str) -> None:
    config, query, document = PROMPTS[case]
    made = tiny_model(tmp_path, configs={"config_sentence_transformers.json": config})
    for vector, prefix in ((question(made), query), (passage(made), document)):
        words = ("[CLS]", *filter(None, [prefix]), "red", "green", "[SEP]")
        assert vector == pytest.approx(unit(rows(*words).mean(axis=0)), abs=1e-6)
    assert isinstance(Builtin(made).embed_query(" "), BadInput)


@pytest.mark.parametrize("by_config", [True, False])
def test_a_model_that_names_no_prefixes_gets_those_that_are_known_of_it(tmp_path: Path, *, by_config: bool) -> None:
    name = "somewhere" if by_config else "multilingual-e5-small"
    configs = {"config.json": {"_name_or_path": "intfloat/multilingual-e5-small"}} if by_config else {}
    made = tiny_model(tmp_path / name, configs=configs)
    assert question(made) == pytest.approx(
        unit(rows("[CLS]", "query:", "red", "green", "[SEP]").mean(axis=0)), abs=1e-6
    )
    assert passage(made) == pytest.approx(
        unit(rows("[CLS]", "passage:", "red", "green", "[SEP]").mean(axis=0)), abs=1e-6
    )


def test_a_prefix_may_be_left_out_of_the_pooling(tmp_path: Path) -> None:
    configs = {
        **POOLING,
        "1_Pooling/config.json": {"pooling_mode_mean_tokens": True, "include_prompt": False},
        "config_sentence_transformers.json": {"prompts": {"query": "Q P "}},
    }
    made = tiny_model(tmp_path, configs=configs)
    assert question(made) == pytest.approx(unit(rows("red", "green", "[SEP]").mean(axis=0)), abs=1e-6)
    assert passage(made) == pytest.approx(unit(TOKENS.mean(axis=0)), abs=1e-6)


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ({"sentence_bert_config.json": {"max_seq_length": 3}}, ("[CLS]", "red", "[SEP]")),
        ({"tokenizer_config.json": {"model_max_length": 4}}, ("[CLS]", "red", "green", "[SEP]")),
        ({"tokenizer_config.json": {"model_max_length": 10**30}}, ("[CLS]", "red", "green", "blue", "[SEP]")),
        ({}, ("[CLS]", "red", "green", "blue", "[SEP]")),
    ],
)
def test_a_text_is_cut_at_the_limit_of_the_model(tmp_path: Path, configs: Any, words: Any) -> None:
    made = tiny_model(tmp_path, configs=configs)
    assert passage(made, "red green blue") == pytest.approx(unit(rows(*words).mean(axis=0)), abs=1e-6)


def test_vectors_are_cut_to_the_dimensions_of_the_configuration(tmp_path: Path) -> None:
    made = tiny_model(tmp_path, configs={"config_sentence_transformers.json": {"truncate_dim": 2}})
    assert passage(made) == pytest.approx(unit(TOKENS.mean(axis=0)[:2]), abs=1e-6)
    assert (Builtin(made).dims, Builtin(made).fingerprint[-2:]) == (2, "-2")


def test_a_model_may_want_lower_case(tmp_path: Path) -> None:
    made = tiny_model(tmp_path, configs={"sentence_bert_config.json": {"do_lower_case": True}})
    assert np.array_equal(passage(made, "RED Green"), passage(made, "red green"))


@pytest.mark.parametrize(("dtype", "within"), [("F32", 1e-6), ("F16", 1e-2), ("BF16", 3e-2)])
@pytest.mark.parametrize(
    ("activation", "function"),
    [("Identity", lambda made: made), ("Tanh", np.tanh), ("ReLU", lambda made: np.maximum(made, 0))],
)
def test_dense_layers_come_after_the_pooling(
    tmp_path: Path, dtype: str, within: float, activation: str, function: Any
) -> None:
    weight = np.random.default_rng(1).standard_normal((3, DIMS)).astype(np.float32)
    bias = np.array([0.5, -1, 2], dtype=np.float32)
    module = "linear" if activation == "Identity" else "activation"
    configs = {**DENSE, "2_Dense/config.json": {"activation_function": f"torch.nn.modules.{module}.{activation}"}}
    made = tiny_model(tmp_path, configs=configs)
    safetensors(made / "2_Dense/model.safetensors", {"linear.weight": weight, "linear.bias": bias}, dtype)
    assert passage(made) == pytest.approx(unit(function(weight @ TOKENS.mean(axis=0) + bias)), abs=within)


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_O4.onnx"])
def test_the_network_lies_where_exporters_put_it(tmp_path: Path, name: str) -> None:
    assert Builtin(tiny_model(tmp_path, model=name)).spec.model == tmp_path / name


def test_the_whole_network_goes_before_a_quantized_one(tmp_path: Path) -> None:
    for name in ("onnx/model_quantized.onnx", "onnx/model.onnx"):
        tiny_model(tmp_path, model=name)
    assert Builtin(tmp_path).spec.model.name == "model.onnx"


CHANGES = {
    "nothing": {},
    "pooling": {**POOLING, "1_Pooling/config.json": {"pooling_mode_cls_token": True}},
    "prefix": {"config_sentence_transformers.json": {"prompts": {"passage": "P "}}},
    "question": {"config_sentence_transformers.json": {"prompts": {"query": "Q "}}},
    "length": {"sentence_bert_config.json": {"max_seq_length": 100}},
    "case": {"sentence_bert_config.json": {"do_lower_case": True}},
    "dims": {"config_sentence_transformers.json": {"truncate_dim": 3}},
}


def test_what_changes_vectors_changes_the_fingerprint(tmp_path: Path) -> None:
    made = {name: Builtin(tiny_model(tmp_path / name, configs=configs)) for name, configs in CHANGES.items()}
    beside = tiny_model(tmp_path / "beside")
    (beside / "model.onnx_data").write_bytes(b"weights")
    fingerprints = {model.fingerprint for model in (*made.values(), Builtin(beside))}
    assert len(fingerprints) == len(CHANGES) + 1
    assert all(8 < len(fingerprint) < 24 for fingerprint in fingerprints)


FAILURES = {
    "a step of another kind": (
        {"modules.json": [*STEPS[:2], {"path": "2", "type": "sentence_transformers.models.WeightedLayerPooling"}]},
        "the step WeightedLayerPooling is not supported",
    ),
    "a pooling of another kind": (
        {**POOLING, "1_Pooling/config.json": {"pooling_mode": "attention"}},
        "the pooling attention is not supported",
    ),
    "a dense layer after the last step": ({"modules.json": [STEPS[0], STEPS[1], STEPS[3], STEPS[2]]}, "in this order"),
    "no weights of a dense layer": (DENSE, "model.safetensors is missing"),
    "another activation": (
        {**DENSE, "2_Dense/config.json": {"activation_function": "torch.nn.modules.activation.GELU"}},
        "the activation GELU is not supported",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_what_is_not_supported_is_named_with_its_file_and_the_fix(tmp_path: Path, case: str) -> None:
    configs, message = FAILURES[case]
    made = tiny_model(tmp_path, configs=configs)
    with pytest.raises(ModelUnavailable, match=message) as error:
        Builtin(made).embed([TEXT])
    assert str(tmp_path) in str(error.value)
    assert ";" in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": ("input_ids", "past_key_values.0.key")}, "it asks for past_key_values.0.key"),
        ({"inputs": ("input_ids", "pixel_values")}, "it asks for pixel_values"),
    ],
)
def test_a_network_of_another_kind_is_refused(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(ModelUnavailable, match=message):
        Builtin(tiny_model(tmp_path, **options)).embed([TEXT])


@pytest.mark.parametrize("name", ["modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"])
def test_a_damaged_configuration_is_named(tmp_path: Path, name: str) -> None:
    made = tiny_model(tmp_path, configs={**POOLING, "1_Pooling/config.json": {}})
    (made / name).write_text("{")
    with pytest.raises(ModelUnavailable, match="cannot be read") as error:
        Builtin(made).embed([TEXT])
    assert name in str(error.value)


@pytest.mark.parametrize(
    "configs",
    [
        {"modules.json": {"steps": []}},
        {"modules.json": ["Pooling"]},
        {"config_sentence_transformers.json": {"prompts": ["query: "]}},
        {"sentence_bert_config.json": {"max_seq_length": "long"}},
    ],
)
def test_a_configuration_of_another_form_is_an_error_of_the_model(tmp_path: Path, configs: Any) -> None:
    with pytest.raises(ModelUnavailable, match="unexpected form"):
        Builtin(tiny_model(tmp_path, configs=configs)).embed([TEXT])


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, (5).to_bytes(8, "little") + b"[1]  "])
def test_damaged_weights_are_named(tmp_path: Path, content: bytes) -> None:
    made = tiny_model(tmp_path, configs={**DENSE, "2_Dense/config.json": {}})
    (made / "2_Dense/model.safetensors").write_bytes(content)
    with pytest.raises(ModelUnavailable, match="not a file of weights"):
        Builtin(made).embed([TEXT])


def test_nothing_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    made = tiny_model(tmp_path)
    model = Builtin(made)
    assert model.name == f"{made} (embedding.model_dir)"
    assert model.spec.query_prefix == ""
    assert model._session is None
