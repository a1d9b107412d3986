"""What is known of models for embedding that neither their files in Ollama nor, for some, those in ONNX form say.

A model that is not listed gets its texts without prefixes, and counts as one that reads everything.

The prefixes are those for search, checked on 2026-11-24:

* against what the benchmark MTEB (github.com/embeddings-benchmark/mteb, commit a905523, model_implementations) runs the
  models with: bge-*-en, mxbai-embed-large, e5, multilingual-e5, multilingual-e5-large-instruct and Qwen3-Embedding (the
  form of ``Instruct: ...``, with a space at its end for e5 alone), nomic-embed-text v1 to v2, arctic-embed-m-v1.5; it
  uses none for MiniLM, bge-m3, granite, gte-multilingual and paraphrase-multilingual
* against copies of the model cards: arctic-embed v2.0 (``query: ``), mxbai-embed-large, nomic-embed-text-v2-moe, and
  EmbeddingGemma (its prompt table, as mistral.rs documents it)
* the sentence within ``Instruct:`` is the one of Qwen's and e5's cards, from memory; so is the prefix of the first
  arctic-embed models other than m-v1.5
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SENTENCE = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A family of models. `dims` is that of its usual size; `tokens` is how much text a model takes.

    `names` is a regular expression of what its models are called whole, in lower case and perhaps with a tag.
    """

    names: str
    card: str
    dims: int
    tokens: int
    is_multilingual: bool
    query_prefix: str = ""
    passage_prefix: str = ""


KNOWN = (
    KnownModel(r"all-minilm(-l\d+(-v\d)?)?", "sentence-transformers/all-MiniLM-L6-v2", 384, 256, False),
    KnownModel(r"bge-base-en(-v1\.5)?", "BAAI/bge-base-en-v1.5", 768, 512, False, _SENTENCE),
    KnownModel(r"bge-large(-en(-v1\.5)?)?", "BAAI/bge-large-en-v1.5", 1024, 512, False, _SENTENCE),
    KnownModel(r"bge-small-en(-v1\.5)?", "BAAI/bge-small-en-v1.5", 384, 512, False, _SENTENCE),
    KnownModel("bge-m3", "BAAI/bge-m3", 1024, 8192, True),
    KnownModel("e5-base(-v2)?", "intfloat/e5-base-v2", 768, 512, False, "query: ", "passage: "),
    KnownModel("e5-large(-v2)?", "intfloat/e5-large-v2", 1024, 512, False, "query: ", "passage: "),
    KnownModel("e5-small(-v2)?", "intfloat/e5-small-v2", 384, 512, False, "query: ", "passage: "),
    KnownModel(
        "embeddinggemma(-300m)?", "google/embeddinggemma-300m", 768, 2048, True,
        "task: search result | query: ", "title: none | text: ",
    ),
    KnownModel(
        "granite-embedding(:(107|278)m.*|-(107|278)m-multilingual)",
        "ibm-granite/granite-embedding-278m-multilingual", 768, 512, True,
    ),
    KnownModel("granite-embedding(-(30|125)m-english)?", "ibm-granite/granite-embedding-30m-english", 384, 512, False),
    KnownModel("gte-multilingual-base", "Alibaba-NLP/gte-multilingual-base", 768, 8192, True),
    KnownModel(
        "multilingual-e5-(small|base|large)",
        "intfloat/multilingual-e5-small", 384, 512, True, "query: ", "passage: ",
    ),
    KnownModel(
        "multilingual-e5-large-instruct", "intfloat/multilingual-e5-large-instruct", 1024, 512, True,
        _INSTRUCT + " ",
    ),
    KnownModel("mxbai-embed-large(-v1)?", "mixedbread-ai/mxbai-embed-large-v1", 1024, 512, False, _SENTENCE),
    KnownModel(
        "nomic-embed-text(:v2.*|-v2(-moe)?)", "nomic-ai/nomic-embed-text-v2-moe", 768, 512, True,
        "search_query: ", "search_document: ",
    ),
    KnownModel(
        r"nomic-embed-text(-v1(\.5)?)?", "nomic-ai/nomic-embed-text-v1.5", 768, 8192, False,
        "search_query: ", "search_document: ",
    ),
    KnownModel(
        "paraphrase-multilingual(-mpnet-base-v2|-minilm-l12-v2)?",
        "sentence-transformers/paraphrase-multilingual-mpnet-base-v2", 768, 128, True
    ),
    KnownModel(r"qwen3-embedding(-(0\.6|4|8)b)?", "Qwen/Qwen3-Embedding-8B", 4096, 32768, True, _INSTRUCT),
    KnownModel(
        r"snowflake-arctic-embed(2|:l-v2.*|-l-v2(\.0)?)",
        "Snowflake/snowflake-arctic-embed-l-v2.0", 1024, 8192, True, "query: ",
    ),
    KnownModel(
        r"snowflake-arctic-embed(:m-v2.*|-m-v2(\.0)?)",
        "Snowflake/snowflake-arctic-embed-m-v2.0", 768, 8192, True, "query: ",
    ),
    KnownModel(
        r"snowflake-arctic-embed(-(xs|s|m|m-long|l))?(-v1\.5)?",
        "Snowflake/snowflake-arctic-embed-l", 1024, 512, False, _SENTENCE,
    ),
)  # fmt: skip
"""Where the tag of a name decides, what it decides for stands first."""
_STORED = r"([-_.](onnx|gguf|int8|uint8|bf16|fp?(16|32)|q\d\w*))*"
"""What is added to a name for the form a model is stored in."""


def known(model: str) -> KnownModel | None:
    """What is known of a model by its whole name, wherever it comes from and in whatever form it is stored.

    So ``jeffh/intfloat-multilingual-e5-large:f16`` is of ``multilingual-e5``. None for a model of another name, be it
    like a known one: ``bge-large-zh`` is no ``bge-large``.
    """
    name = model.lower().rstrip("/").rpartition("/")[2]
    return next((entry for entry in KNOWN if _is_of(entry, name)), None)


def _is_of(entry: KnownModel, name: str) -> bool:
    maker = re.escape(entry.card.partition("/")[0].lower())
    return re.fullmatch(rf"({maker}-)?({entry.names}){_STORED}(:.*)?", name) is not None
