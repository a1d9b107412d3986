"""A model of the Hugging Face hub: downloaded once into the cache, then used like any directory.

Only the files that embedding needs are fetched: one network in ONNX form with its weights, the tokenizer, and
the configuration of sentence-transformers. Each is checked against the hub's hash. An interrupted download is resumed,
also by another process. After the download we do not contact the hub again.

We do not use the hub's own client, because huggingface_hub 2.4 restarts a file of 0.5 GB in every process.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from daemon import log
from daemon.embed.sentence_model import preferred
from daemon.errors import DiskFull, ModelUnavailable
from daemon.filesystem import durable
from daemon.model import Json

if TYPE_CHECKING:
    import httpx

PREFIX = "hf:"
_ENDPOINT = "https://huggingface.co"
_COMPLETE = ".complete"
"""Written last; contains the commit of the files."""
_PART = ".part"
_CONFIGS = (
    "modules.json", "config.json", "config_sentence_transformers.json", "sentence_bert_config.json",
    "tokenizer_config.json",
)  # fmt: skip
_STEPS = re.compile(r"\d+_\w+/(config\.json|model\.safetensors)")
"""Pooling and dense layers."""
_TIMEOUT_S = 20.0
_PIECE = 1 << 18
_LOG = log.get("embed")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a model; large files have a `sha256`, others only `blob`, their hash in Git."""

    name: str
    size: int
    sha256: str
    blob: str

    def is_at(self, path: Path) -> bool:
        """Whether the file at `path` is this one."""
        if not path.is_file() or path.stat().st_size != self.size:
            return False
        digest = hashlib.sha256() if self.sha256 else hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        return digest.hexdigest() == (self.sha256 or self.blob)


class HubModel:
    """The model that ``hf:OWNER/NAME`` or ``hf:OWNER/NAME@REVISION`` names; `cache` has a directory for each.

    $HF_ENDPOINT replaces the hub's address. $HF_TOKEN is sent if set; models behind a licence need it.
    """

    def __init__(self, name: str, cache: Path) -> None:
        self.name = name.removeprefix(PREFIX)
        self._repository, _, revision = self.name.partition("@")
        self._revision = revision or "main"
        self._endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or _ENDPOINT
        self._progress = ""
        self.directory = cache / re.sub(r"[^\w.@-]+", "--", self.name)

    @property
    def is_downloaded(self) -> bool:
        """Whether all files are downloaded."""
        return (self.directory / _COMPLETE).is_file()

    def check(self) -> None:
        """Check without waiting that the model is downloaded.

        Raises:
            ModelUnavailable: it is not.
        """
        if not self.is_downloaded:
            raise ModelUnavailable(
                self._progress or f"{self.name} is not downloaded yet; `reconstitute index --wait` does it"
            )

    def size(self) -> int:
        """Bytes to download; asks the hub.

        Raises:
            ModelUnavailable: see fetch.
        """
        with self._connected() as client:
            return sum(file.size for file in self._files(client)[1])

    def fetch(self) -> None:
        """Download missing files.

        Raises:
            ModelUnavailable: the hub does not answer, or has no such model, or none in ONNX form; files stay.
            DiskFull: there is no room for it.
        """
        if self.is_downloaded:
            return
        with self._connected() as client, self._locked():
            commit, files = self._files(client)
            self._check_space(files)
            _LOG.info("a model for embedding is downloaded", model=self.name, bytes=sum(file.size for file in files))
            for number, file in enumerate(files, start=1):
                self._progress = (
                    f"{self.name} is being downloaded (file {number} of {len(files)}); meaning waits for it"
                )
                if not file.is_at(self.directory / file.name):
                    self._download(client, commit, file)
            durable.atomic_write(self.directory / _COMPLETE, f"{commit}\n".encode())
            _LOG.info("a model for embedding was downloaded", model=self.name)

    # -- the hub -----------------------------------------------------------------------------------------------------

    def _files(self, client: httpx.Client) -> tuple[str, list[HubFile]]:
        """The commit of the revision, and its files that we need."""
        about = f"/api/models/{self._repository}/revision/{quote(self._revision, safe='')}"
        answer = client.get(about, params={"blobs": "true"})
        self._check_status(answer)
        try:
            description: Json = answer.json()
            listed = {sibling["rfilename"]: sibling for sibling in description["siblings"]}
            files = [_file(listed[name]) for name in needed(self.name, listed)]
            return str(description["sha"]), files
        except (KeyError, TypeError, ValueError) as error:
            raise ModelUnavailable(
                f"{self._endpoint}: the answer is not the hub's: {error!r}; check HF_ENDPOINT"
            ) from None

    def _download(self, client: httpx.Client, commit: str, file: HubFile) -> None:
        place = self.directory / file.name
        part = place.with_name(f"{place.name}.{(file.sha256 or file.blob)[:12]}{_PART}")
        place.parent.mkdir(parents=True, exist_ok=True)
        downloaded = part.stat().st_size if part.exists() else 0
        if downloaded < file.size or not downloaded:
            headers = {"Range": f"bytes={downloaded}-"} if downloaded else {}
            with client.stream(
                "GET", f"/{self._repository}/resolve/{commit}/{quote(file.name)}", headers=headers
            ) as answer:
                self._check_status(answer)
                with open(part, "ab" if answer.status_code == 206 else "wb") as output:
                    output.writelines(answer.iter_bytes())
                    output.flush()
                    durable.sync(output.fileno())
        if not file.is_at(part):
            part.unlink()
            raise ModelUnavailable(
                f"{self._endpoint}: {self.name}: {file.name} came otherwise than described; it is tried again"
            )
        part.replace(place)

    def _check_status(self, answer: httpx.Response) -> None:
        """Raise an error unless the request succeeded; the hub also says 401 for a model that does not exist."""
        if answer.is_success:
            return
        failure = f"{self._endpoint}: {self.name}: HTTP {answer.status_code}"
        if answer.status_code in {401, 403, 404}:
            fix = "check the name in embedding.model_dir; if the model asks for consent, give it there and set HF_TOKEN"
            raise ModelUnavailable(f"{failure}: no such model, or not for everyone; {fix}")
        raise ModelUnavailable(f"{failure}; it is tried again")

    @contextmanager
    def _connected(self) -> Iterator[httpx.Client]:
        # Imported late: it takes 0.4 s, and only a download needs it.
        import httpx  # noqa: PLC0415 - see above

        token = os.environ.get("HF_TOKEN", "")
        headers = {"Accept-Encoding": "identity"}  # so that lengths are those of the file
        if token:
            headers["Authorization"] = f"Bearer {token}"  # httpx sends it to no other host
        try:
            with httpx.Client(
                base_url=self._endpoint, headers=headers, timeout=_TIMEOUT_S, follow_redirects=True
            ) as client:
                yield client
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._progress = (
                f"{self.name} is not downloaded: {self._endpoint} does not answer ({error}); it is tried again, or "
                "copy the model's files to a directory and name that in embedding.model_dir"
            )
            raise ModelUnavailable(self._progress) from None
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise DiskFull(f"{self.directory}: no room for {self.name}; free some space") from None
            raise ModelUnavailable(
                f"{self.directory}: the model cannot be kept there: {error.strerror}; check XDG_CACHE_HOME"
            ) from None

    # -- the cache ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Allows one process at a time."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / ".lock", "wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ModelUnavailable(f"{self.name} is being downloaded by another process; wait for it") from None
            yield

    def _check_space(self, files: Sequence[HubFile]) -> None:
        downloaded = sum(path.stat().st_size for path in self.directory.rglob("*") if path.is_file())
        required, free = sum(file.size for file in files) - downloaded, shutil.disk_usage(self.directory).free
        if required > free:
            raise DiskFull(
                f"{self.directory}: {self.name} needs {required / 1e6:.0f} MB, {free / 1e6:.0f} are free; free some"
            )


def needed(model: str, names: Sequence[str] | Json) -> list[str]:
    """The files to download of those that the hub lists, small ones first.

    Raises:
        ModelUnavailable: the model has no network in ONNX form, or no tokenizer.
    """
    network = preferred(names)
    tokenizer = next((name for name in ("tokenizer.json", "onnx/tokenizer.json") if name in names), None)
    if network is None or tokenizer is None:
        missing = "no tokenizer.json" if network else "no file in ONNX form"
        raise ModelUnavailable(
            f"{model} has {missing} on the hub; choose another model, or export it into a directory and name that in "
            "embedding.model_dir"
        )
    is_config: Callable[[str], Any] = lambda name: name in _CONFIGS or _STEPS.fullmatch(name)  # noqa: E731
    beside = [name for name in names if re.fullmatch(rf"{re.escape(network)}[_.]data.*", name)]
    return [*sorted(filter(is_config, names)), tokenizer, *sorted(beside), network]


def _file(sibling: Json) -> HubFile:
    return HubFile(
        name=sibling["rfilename"],
        size=int(sibling["size"]),
        sha256=str((sibling.get("lfs") or {}).get("sha256", "")),
        blob=str(sibling["blobId"]),
    )
