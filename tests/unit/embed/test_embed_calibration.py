"""What a model's cosines say: calibrated, those of any model mean what those of the built-in model do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from daemon.embed import Vector
from daemon.embed.builtin import Builtin
from daemon.embed.calibration import BUILT_IN, PAIRS, Calibration, calibration, measure
from daemon.errors import BadInput, ModelUnavailable
from tests.support.servers.fake_ollama import vector
from tests.unit.ingest.test_ingest_upkeep import Hashed

OTHERS = (
    "How do I stop the container?",
    "docker stop NAME ends it after ten seconds.",
    "Bread needs flour, water, salt and yeast.",
    "ok",
    "The invoice was sent to the wrong address.",
    "Baking a loaf takes three hours.",
)


class Crowded:
    """The built-in model with one more direction that all texts share: cosines go from 0.7 to 1 in place of 0 to 1."""

    name = "crowded"

    def __init__(self) -> None:
        self._model = Builtin()

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        return [self._crowded(vector) for vector in self._model.embed(texts)]

    def embed_query(self, text: str) -> Vector | BadInput:
        return self._crowded(self._model.embed_query(text))

    def _crowded(self, vector: Vector | BadInput) -> Vector | BadInput:
        if isinstance(vector, BadInput):
            return vector
        return np.append(vector * np.float32(0.3**0.5), np.float32(0.7**0.5))


def cosines(model: Crowded | Builtin) -> np.ndarray:
    vectors = np.array(model.embed(OTHERS))
    return (vectors @ vectors.T).ravel()


def test_the_built_in_model_is_what_others_are_compared_with():
    assert measure(Builtin()) == pytest.approx(BUILT_IN, abs=0.02)  # its weights are int8: processors differ


def test_cosines_that_lie_close_together_become_those_of_the_built_in_model():
    crowded, plain = cosines(Crowded()), cosines(Builtin())
    assert crowded.min() > 0.65
    calibrated = calibration(measure(Crowded()))
    assert calibrated.is_telling
    middle = BUILT_IN[0]  # below it all texts are as unrelated
    assert [max(middle, calibrated(cosine)) for cosine in crowded] == pytest.approx(np.maximum(middle, plain), abs=0.01)


MEASURED = {
    "e5": (0.74, 0.79, 0.86, 0.91),
    "wide": (-0.1, 0.2, 0.9, 0.99),
    "the same for all texts": (1.0, 1.0, 1.0, 1.0),
    "at right angles": (0.0, 0.0, 0.0, 0.0),
    "not telling": (0.2, 0.4, 0.3, 0.5),
    "opposite": (-1.0, -1.0, -1.0, -1.0),
    "no spread above": (0.1, 0.2, 0.6, 0.6),
    "equal where related": (0.1, 0.2, 1.0, 1.0),
}


@pytest.mark.parametrize("measured", MEASURED.values(), ids=MEASURED)
def test_the_order_of_cosines_stays_whatever_was_measured(measured: tuple[float, ...]):
    made = calibration(measured)
    calibrated = [made(cosine) for cosine in np.linspace(-1, 1, 401)]
    assert calibrated == sorted(calibrated)
    assert -1 <= calibrated[0] <= calibrated[-1] <= 1
    assert made.is_telling == (measured[2] > measured[1])
    if made.is_telling:
        assert [made(cosine) for cosine in measured[:3]] == pytest.approx(BUILT_IN[:3], abs=1e-3)
    else:  # noise is no meaning
        assert made(measured[0]) <= BUILT_IN[1]


def test_a_model_that_is_not_calibrated_keeps_its_cosines():
    assert [Calibration()(cosine) for cosine in (-1, -0.3, 0, 0.62, 1)] == pytest.approx([-1, -0.3, 0, 0.62, 1])


def test_texts_that_a_model_refuses_are_left_out_and_all_of_them_are_an_error():
    model = Hashed()
    whole = measure(model)
    model.refused = "PostgreSQL"
    assert measure(model) == pytest.approx(whole, abs=0.05)
    model.refused = " "
    with pytest.raises(ModelUnavailable, match="no vectors for plain sentences: no vector for this text"):
        measure(model)


def test_the_pairs_are_whole_and_each_text_stands_once():
    texts = [text for pair in PAIRS for text in pair]
    assert len(set(texts)) == len(texts)
    assert len({tuple(vector(text, 64)) for text in texts}) == len(texts)
