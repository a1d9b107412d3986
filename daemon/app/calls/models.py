"""The call `models`: which embedding models are at hand, what each reads of this archive, and how fast it is here.

Each model embeds a few of the archive's own texts. A server loads a model for that, which may take a while and put
another one out of its memory, so only a person's request does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from daemon.archive import Archive
from daemon.config import Config
from daemon.control import calls, model_answers
from daemon.control.calls import Progress
from daemon.embed import Embedder, reads
from daemon.embed.builtin import WorkerEmbedder
from daemon.embed.choose import local_embedder
from daemon.embed.known_models import known
from daemon.errors import BadInput, Retry, Skip
from daemon.ingest import Upkeep
from daemon.ingest.outbox import Entries
from daemon.redact import redact
from daemon.transcript.chunks import chunks

_MESSAGES = 200
"""Messages in the sample, evenly from the whole archive."""
_TEXTS = 64
_MEASURED_S = 2.0
_PROBE_S = 2.0
_LOADING_S = 60.0
"""How long a server may take for a request; it may have to load the model."""
_MUCH_UNREAD = 0.02
_LONG_S = 12 * 3600


class ModelCalls:
    """A part of the engine: it has the archive and the model in use."""

    archive: Archive
    upkeep: Upkeep
    config: Config

    def current(self, _progress: Progress) -> list[str]:
        """See RecallCalls."""
        return []

    def models(self, _request: calls.Models, progress: Progress) -> model_answers.Models:
        """See calls.Models."""
        answer = model_answers.Models(warnings=self.current(progress), messages=self.archive.message_count())
        sample = self._sample()
        answer.sample = len(sample)
        in_use, is_off = self.upkeep.embedder, "semantic" in self.archive.off
        if is_off:
            answer.warnings.append('no model is in use, and nothing is found by meaning: embedding.what is "none"')
        alternatives = [pair for pair in self._alternatives(answer.warnings) if pair[0].name != in_use.name]
        for done, (embedder, setting) in enumerate([(in_use, ""), *alternatives]):
            progress({"phase": "models", "done": done, "total": len(alternatives) + 1})
            model = _measured(embedder, sample, answer.messages)
            model.error += self._download_size(model.name) if model.error else ""
            model.in_use, model.setting = embedder is in_use and not is_off, setting
            answer.models.append(model)
            if embedder is not in_use:
                embedder.close()
        answer.advice = advice(answer.models)
        return answer

    def _download_size(self, name: str) -> str:
        """How much must be downloaded for a model of the hub that is not here yet; "" for other models."""
        configured = local_embedder(self.config.embedding, self.upkeep.worker)
        if configured.hub is None or configured.name != name or configured.hub.is_downloaded:
            return ""
        try:
            return f" ({configured.hub.size() / 1e6:.0f} MB are to be downloaded)"
        except Retry as error:
            return f" ({redact(str(error))})"

    def _sample(self) -> list[list[str]]:
        """The chunks of some messages that have any."""
        ids = list(self.archive.all_message_ids())
        entries = Entries(self.archive, self.config.limits.indexed_kb, windows=False)
        sample = (entries.of(message_id) for message_id in ids[:: max(1, len(ids) // _MESSAGES)][:_MESSAGES])
        texts = (chunks(entry.document, self.config.limits.embedded_kb) for entry in sample if entry is not None)
        return [[chunk.text for chunk in message_chunks] for message_chunks in texts if message_chunks]

    def _alternatives(self, warnings: list[str]) -> Iterator[tuple[Embedder, str]]:
        """Models that could be used, each with the setting that chooses it."""
        embedding = self.config.embedding
        is_default, worker = embedding.model_dir == "", self.upkeep.worker
        yield (
            WorkerEmbedder(worker),
            'embedding.provider = "builtin"' + ("" if is_default else ', embedding.model_dir = ""'),
        )
        if not is_default:
            yield local_embedder(embedding, worker), 'embedding.provider = "builtin"'
        # Late: the client takes 0.4 s to import.
        from daemon.embed.ollama import OllamaEmbedder  # noqa: PLC0415 - see above
        from daemon.ollama_server import OllamaServer  # noqa: PLC0415 - see above

        server = OllamaServer(embedding.url, _PROBE_S, setting="embedding.url")
        try:
            for name in sorted(server.models()):
                can = server.show(name).can("embedding")
                if can or (can is None and known(name) is not None):
                    short = name.removesuffix(":latest")
                    remote = OllamaEmbedder(
                        embedding.url, short, embedding.num_ctx, embedding.batch, timeout_s=_LOADING_S
                    )
                    yield remote, f'embedding.provider = "ollama", embedding.model = "{short}"'
        except (Retry, Skip) as error:
            warnings.append(f"Ollama's models were not looked at: {redact(str(error))}")
        finally:
            server.close()


def _measured(embedder: Embedder, sample: Sequence[Sequence[str]], messages: int) -> model_answers.EmbeddingModel:
    model = model_answers.EmbeddingModel(name=embedder.name)
    try:
        embedder.legible("a")  # fails if the model is not downloaded, where the other calls would download it
        model.dims = embedder.dims
        legible = [[text for text in texts if reads(embedder, text)] for texts in sample]
        texts = [text for message_texts in legible for text in message_texts]
        model.readable = sum(map(bool, legible)) / len(sample) if sample else None
        model.texts_per_second = texts_per_second(embedder, texts or ["The quick brown fox jumps over the lazy dog."])
        if sample:
            model.seconds = round(len(texts) / len(sample) * messages / model.texts_per_second, 1)
    except (Retry, Skip) as error:
        model.error = redact(str(error))
    return model


def texts_per_second(embedder: Embedder, texts: Sequence[str], clock: Callable[[], float] = time.monotonic) -> float:
    """How many texts the model embeds in a second, by some of `texts` and for about two seconds.

    Raises:
        ModelUnavailable: it does not work.
        BadInput: it takes none of the texts.
    """
    chosen = texts[:: max(1, len(texts) // _TEXTS)][:_TEXTS]
    embedder.embed(chosen[:1])  # loads the model
    began, embedded = clock(), 0
    for text in chosen:
        vector = embedder.embed([text])[0]
        embedded += not isinstance(vector, BadInput)
        if clock() - began >= _MEASURED_S:
            break
    if not embedded and isinstance(vector, BadInput):
        raise vector
    return round(embedded / max(clock() - began, 1e-6), 1)


def advice(models: Sequence[model_answers.EmbeddingModel]) -> str:
    """What to do, in a sentence; the first of `models` is the one in use."""
    in_use, *alternatives = models
    usable = [model for model in alternatives if not model.error]
    if in_use.error:
        use = f"; or use {usable[0].name}: {usable[0].setting}" if usable else ""
        return f"{in_use.name} does not work; mend what its error names{use}"
    if in_use.readable is None:
        return f"{in_use.name} works; nothing is archived yet that models could be compared by"
    share = in_use.readable
    better = max(usable, key=lambda model: (model.readable or 0.0, model.texts_per_second), default=None)
    if share < 1 - _MUCH_UNREAD:
        unread = f"{in_use.name} cannot read {1 - share:.0%} of the messages; search by words for them"
        if better is not None and (better.readable or 0.0) > share:
            return f"{unread}; {better.name} reads {better.readable:.0%}: {better.setting}"
        return (
            f"{unread}; get a multilingual model, such as bge-m3 (ollama pull bge-m3) or "
            'embedding.model_dir = "hf:intfloat/multilingual-e5-small", about 0.5 GB, downloaded once'
        )
    quicker = [model for model in usable if (model.readable or 0.0) >= share and 2 * model.seconds < in_use.seconds]
    if in_use.seconds > _LONG_S and quicker:
        best = min(quicker, key=lambda model: model.seconds)
        return f"{in_use.name} is slow for an archive of this size; {best.name} is quicker: {best.setting}"
    return f"{in_use.name} reads what is in this archive; nothing needs to be changed"
