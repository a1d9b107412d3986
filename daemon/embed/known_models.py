"""What is known of models for embedding that neither their files in Ollama nor, for some, those in ONNX form say.

The prefixes are those that the model's card on the Hugging Face hub (`card`) gives for search, as of November 2026. A
model that is not listed gets its texts without prefixes, and counts as one that reads everything.
"""

from __future__ import annotations

from dataclasses import dataclass

_SENTENCE = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A family of models. `dims` is that of its usual size; `tokens` is how much text a model takes."""

    name: str
    card: str
    dims: int
    tokens: int
    is_multilingual: bool
    query_prefix: str = ""
    passage_prefix: str = ""


KNOWN = (
    KnownModel("all-minilm", "sentence-transformers/all-MiniLM-L6-v2", 384, 256, False),
    KnownModel("bge-base-en", "BAAI/bge-base-en-v1.5", 768, 512, False, _SENTENCE),
    KnownModel("bge-large", "BAAI/bge-large-en-v1.5", 1024, 512, False, _SENTENCE),
    KnownModel("bge-small-en", "BAAI/bge-small-en-v1.5", 384, 512, False, _SENTENCE),
    KnownModel("bge-m3", "BAAI/bge-m3", 1024, 8192, True),
    KnownModel("e5-base", "intfloat/e5-base-v2", 768, 512, False, "query: ", "passage: "),
    KnownModel("e5-large", "intfloat/e5-large-v2", 1024, 512, False, "query: ", "passage: "),
    KnownModel("e5-small", "intfloat/e5-small-v2", 384, 512, False, "query: ", "passage: "),
    KnownModel(
        "embeddinggemma", "google/embeddinggemma-300m", 768, 2048, True,
        "task: search result | query: ", "title: none | text: ",
    ),
    KnownModel("granite-embedding", "ibm-granite/granite-embedding-30m-english", 384, 512, False),
    KnownModel("granite-embedding:278m", "ibm-granite/granite-embedding-278m-multilingual", 768, 512, True),
    KnownModel("gte-multilingual-base", "Alibaba-NLP/gte-multilingual-base", 768, 8192, True),
    KnownModel("multilingual-e5", "intfloat/multilingual-e5-small", 384, 512, True, "query: ", "passage: "),
    KnownModel(
        "multilingual-e5-large-instruct", "intfloat/multilingual-e5-large-instruct", 1024, 512, True,
        _INSTRUCT + " ",
    ),
    KnownModel("mxbai-embed-large", "mixedbread-ai/mxbai-embed-large-v1", 1024, 512, False, _SENTENCE),
    KnownModel(
        "nomic-embed-text", "nomic-ai/nomic-embed-text-v1.5", 768, 2048, False,
        "search_query: ", "search_document: ",
    ),
    KnownModel(
        "nomic-embed-text-v2", "nomic-ai/nomic-embed-text-v2-moe", 768, 512, True,
        "search_query: ", "search_document: ",
    ),
    KnownModel(
        "paraphrase-multilingual", "sentence-transformers/paraphrase-multilingual-mpnet-base-v2", 768, 128, True
    ),
    KnownModel("qwen3-embedding", "Qwen/Qwen3-Embedding-8B", 4096, 32768, True, _INSTRUCT),
    KnownModel("snowflake-arctic-embed", "Snowflake/snowflake-arctic-embed-l", 1024, 512, False, _SENTENCE),
    KnownModel("snowflake-arctic-embed2", "Snowflake/snowflake-arctic-embed-l-v2.0", 1024, 8192, True, "query: "),
    KnownModel("snowflake-arctic-embed-l-v2.0", "Snowflake/snowflake-arctic-embed-l-v2.0", 1024, 8192, True, "query: "),
    KnownModel("snowflake-arctic-embed-m-v2.0", "Snowflake/snowflake-arctic-embed-m-v2.0", 768, 8192, True, "query: "),
)  # fmt: skip


def known(model: str) -> KnownModel | None:
    """What is known of a model: by the longest name of the table that its own contains.

    So ``jeffh/intfloat-multilingual-e5-large:f16`` is ``multilingual-e5``. None for a model of another name.
    """
    name = model.lower().rstrip("/").rpartition("/")[2]
    matches = [entry for entry in KNOWN if entry.name in name]
    return max(matches, key=lambda entry: len(entry.name), default=None)
