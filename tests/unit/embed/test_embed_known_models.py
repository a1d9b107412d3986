"""What is known of models, by their names."""

from __future__ import annotations

import pytest

from daemon.embed.known_models import KNOWN, known


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("all-minilm:l6-v2", "sentence-transformers/all-MiniLM-L6-v2"),
        ("bge-large:335m", "BAAI/bge-large-en-v1.5"),
        ("BAAI/bge-large-en-v1.5", "BAAI/bge-large-en-v1.5"),
        ("quentinz/bge-large-zh-v1.5", ""),
        ("bge-m3:567m-fp16", "BAAI/bge-m3"),
        ("bge-m3-retromae", ""),
        ("jeffh/intfloat-multilingual-e5-large:f16", "intfloat/multilingual-e5-small"),
        ("multilingual-e5-large-instruct", "intfloat/multilingual-e5-large-instruct"),
        ("~/models/multilingual-e5-small-onnx/", "intfloat/multilingual-e5-small"),
        ("e5-base-v2", "intfloat/e5-base-v2"),
        ("e5-base-korean", ""),
        ("granite-embedding", "ibm-granite/granite-embedding-30m-english"),
        ("granite-embedding:278m-fp16", "ibm-granite/granite-embedding-278m-multilingual"),
        ("granite-embedding-278m-multilingual", "ibm-granite/granite-embedding-278m-multilingual"),
        ("granite-embedding-small-r2", ""),
        ("nomic-embed-text:v1.5", "nomic-ai/nomic-embed-text-v1.5"),
        ("nomic-embed-text-v2-moe:latest", "nomic-ai/nomic-embed-text-v2-moe"),
        ("my-nomic-embed-text", ""),
        ("qwen3-embedding:0.6b", "Qwen/Qwen3-Embedding-8B"),
        ("dengcao/Qwen3-Embedding-0.6B:Q8_0", "Qwen/Qwen3-Embedding-8B"),
        ("snowflake-arctic-embed:335m", "Snowflake/snowflake-arctic-embed-l"),
        ("snowflake-arctic-embed:l-v2", "Snowflake/snowflake-arctic-embed-l-v2.0"),
        ("snowflake-arctic-embed-m-v2.0", "Snowflake/snowflake-arctic-embed-m-v2.0"),
        ("snowflake-arctic-embed2:568m", "Snowflake/snowflake-arctic-embed-l-v2.0"),
        ("", ""),
    ],
)
def test_a_model_is_known_by_its_whole_name(name: str, card: str) -> None:
    entry = known(name)
    assert (entry.card if entry else "") == card


@pytest.mark.parametrize("card", [entry.card for entry in KNOWN])
def test_every_model_is_known_by_the_name_of_its_card(card: str) -> None:
    entry = known(card)
    assert entry is not None
    assert entry.card == card or entry.card.startswith("intfloat/multilingual")
