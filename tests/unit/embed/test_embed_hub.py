"""A model of the Hugging Face hub is downloaded once, whole and checked, and only by whoever needs its files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import HfApi, hf_hub_download

from daemon import config
from daemon.embed.builtin import Builtin
from daemon.embed.choose import local_embedder
from daemon.embed.hub import HubModel, needed
from daemon.errors import DiskFull, ModelUnavailable
from daemon.worker import Worker
from tests.support.servers.fake_hub import LARGE, FakeHub
from tests.support.tiny_model import tiny_model

NAME = "maker/tiny"
CONFIGS = {
    "config.json": {"model_type": "bert"},
    "modules.json": [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}],
    "1_Pooling/config.json": {"pooling_mode_cls_token": True},
    "config_sentence_transformers.json": {"prompts": {"query": "Q ", "document": "P "}},
    "extra/unused.json": {"large": "x" * LARGE},
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    place = tiny_model(tmp_path / "tiny", model="onnx/model.onnx", configs=CONFIGS)
    (place / "pytorch_model.bin").write_bytes(b"weights" * LARGE)
    (place / "README.md").write_text("# Tiny")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with FakeHub({NAME: place}) as made:
        monkeypatch.setenv("HF_ENDPOINT", made.url)
        yield made


def model(tmp_path: Path, name: str = f"hf:{NAME}") -> HubModel:
    return HubModel(name, tmp_path / "cache" / "models")


def test_the_stand_in_speaks_to_the_hubs_own_client(hub: FakeHub, tmp_path: Path):
    about = HfApi(endpoint=hub.url).model_info(NAME, files_metadata=True)
    sizes = {sibling.rfilename: sibling.size for sibling in about.siblings or []}
    assert sizes["onnx/model.onnx"] == (hub.models[NAME] / "onnx/model.onnx").stat().st_size
    for name in ("onnx/model.onnx", "config.json"):
        fetched = hf_hub_download(NAME, name, endpoint=hub.url, cache_dir=tmp_path / "theirs")
        assert Path(fetched).read_bytes() == (hub.models[NAME] / name).read_bytes()


def test_a_model_of_the_hub_embeds_as_from_its_directory(hub: FakeHub, worker: Worker):
    made = local_embedder(config.Embedding(model_dir=f"hf:{NAME}"), worker)
    assert made.name == "maker/tiny (embedding.model_dir)"
    assert hub.requests == []
    plain = Builtin(hub.models[NAME])
    assert np.array(made.embed(["red green"])) == pytest.approx(np.array(plain.embed(["red green"])))
    assert np.array(made.embed_query("red")) == pytest.approx(np.array(plain.embed_query("red")))
    assert made.legible("red") == plain.legible("red")


def test_only_what_embedding_needs_is_downloaded_and_only_once(hub: FakeHub, tmp_path: Path):
    made = model(tmp_path)
    made.fetch()
    there = {path.relative_to(made.directory).as_posix() for path in made.directory.rglob("*") if path.is_file()}
    unused = {"extra/unused.json"}
    assert there - {".complete", ".lock"} == {*CONFIGS, "onnx/model.onnx", "tokenizer.json"} - unused
    hub.requests.clear()
    model(tmp_path).fetch()
    model(tmp_path).check()
    assert hub.requests == []


def test_a_download_that_breaks_off_goes_on_where_it_stopped(hub: FakeHub, tmp_path: Path):
    hub.cut = 100
    with pytest.raises(ModelUnavailable, match=r"maker/tiny is not downloaded: .*; it is tried again"):
        model(tmp_path).fetch()
    with pytest.raises(ModelUnavailable, match="not downloaded yet"):
        model(tmp_path).check()
    hub.requests.clear()
    made = model(tmp_path)  # as of another process
    made.fetch()
    assert "bytes=100-" in [range_ for _, _, range_, _ in hub.requests]
    for name in ("tokenizer.json", "onnx/model.onnx"):
        assert (made.directory / name).read_bytes() == (hub.models[NAME] / name).read_bytes()
    assert not list(made.directory.rglob("*.part"))


@pytest.mark.parametrize("name", ["model.onnx", "config.json"])
def test_a_file_that_comes_with_another_content_is_not_used(hub: FakeHub, tmp_path: Path, name: str):
    hub.spoilt = name
    with pytest.raises(ModelUnavailable, match="came otherwise than described"):
        model(tmp_path).fetch()
    assert not model(tmp_path).is_downloaded
    hub.spoilt = ""
    model(tmp_path).fetch()
    assert model(tmp_path).is_downloaded


def test_without_the_hub_the_error_says_what_to_do(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    made = model(tmp_path)
    with pytest.raises(
        ModelUnavailable, match=r"127\.0\.0\.1:9 does not answer .*copy the model's files to a directory"
    ):
        made.fetch()
    with pytest.raises(ModelUnavailable, match="does not answer"):
        made.check()


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("hf:maker/absent", 0, "HTTP 401: no such model, or not for everyone; check the name"),
        (f"hf:{NAME}", 503, "HTTP 503; it is tried again"),
        (f"hf:{NAME}", 200, "the answer is not the hub's"),
    ],
)
def test_what_the_hub_refuses_is_named(hub: FakeHub, tmp_path: Path, name: str, status: int, message: str):
    hub.status = status
    with pytest.raises(ModelUnavailable, match=message):
        model(tmp_path, name).fetch()


def test_a_question_does_not_wait_for_a_download(hub: FakeHub, worker: Worker):
    made = local_embedder(config.Embedding(model_dir=f"hf:{NAME}"), worker)
    for ask in (made.embed_query, made.legible):
        with pytest.raises(
            ModelUnavailable, match="maker/tiny is not downloaded yet; `reconstitute index --wait` does it"
        ):
            ask("red")
    assert hub.requests == []


def test_a_second_process_leaves_a_download_locked(hub: FakeHub, tmp_path: Path):
    with model(tmp_path)._locked(), pytest.raises(ModelUnavailable, match="by another process"):
        model(tmp_path).fetch()


def test_a_full_disk_is_told_before_the_download(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1))
    with pytest.raises(DiskFull, match="needs 0 MB, 0 are free"):
        model(tmp_path).fetch()
    assert [path for path in hub.paths if "resolve" in path] == []


def test_a_revision_is_asked_for_and_kept_apart(hub: FakeHub, tmp_path: Path):
    made = model(tmp_path, f"hf:{NAME}@refs/pr/1")
    made.fetch()
    assert hub.paths[0] == f"/api/models/{NAME}/revision/refs/pr/1"
    assert made.directory.name == "maker--tiny@refs--pr--1"
    assert not model(tmp_path).is_downloaded


def test_a_token_goes_to_the_hub_and_nowhere_else(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", "hf_a")
    model(tmp_path).fetch()
    tokens = {(path.startswith("/cdn"), token) for _, path, _, token in hub.requests}
    assert tokens == {(False, "Bearer hf_a"), (True, "")}


CHOICES = {
    "the whole network": (["onnx/model.onnx", "onnx/model_int8.onnx", "tokenizer.json"], "onnx/model.onnx"),
    "a quantized one": (
        ["onnx/model_quantized.onnx", "onnx/model_q4.onnx", "tokenizer.json"],
        "onnx/model_quantized.onnx",
    ),
    "weights beside it": (["onnx/model.onnx", "onnx/model.onnx_data", "tokenizer.json"], "onnx/model.onnx_data"),
    "any other": (["onnx/model_q4.onnx", "deep/in/model.onnx", "tokenizer.json"], "onnx/model_q4.onnx"),
}


@pytest.mark.parametrize(("names", "wanted"), CHOICES.values(), ids=CHOICES)
def test_one_network_is_chosen(names: list[str], wanted: str):
    chosen = needed("m", names)
    assert wanted in chosen
    assert len([name for name in chosen if name.endswith(".onnx")]) == 1


@pytest.mark.parametrize(
    ("names", "missing"), [(["model.bin", "tokenizer.json"], "no file in ONNX form"), (["model.onnx"], "no tokenizer")]
)
def test_a_model_without_the_files_it_takes_is_named(names: list[str], missing: str):
    with pytest.raises(ModelUnavailable, match=f"m has {missing}"):
        needed("m", names)
