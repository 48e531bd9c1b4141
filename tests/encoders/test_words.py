"""TF-IDF with SVD in plain operations, against scikit-learn's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spinal.data.texts import TfidfSVD
from spinal.encoders import encode
from spinal.encoders.tfidf import TfidfEncoder
from spinal.errors import DataError, FileFormatError

TEXTS = [
    "A good film, good actors: GOOD.",
    "bad actors in a bad film",
    "the cat sat on the mat",
    "Ça va? naïve café, the 2nd film_noir",
    "actors and cats on a mat",
]
MORE = ["good cats, bad CATS", "", "nothing known here", "film film film actors"]


@pytest.fixture(scope="module")
def encoder() -> TfidfEncoder:
    return TfidfEncoder.fit(TEXTS, components=4)


def test_vectors_are_those_of_scikit_learn(encoder: TfidfEncoder) -> None:
    expected = TfidfSVD(TEXTS, components=4)([*TEXTS, *MORE])
    assert np.allclose(encode(encoder, [*TEXTS, *MORE]), expected, atol=1e-6)
    assert encoder.width == 4
    assert encode(encoder, []).shape == (0, 4)


def test_a_text_without_a_word_is_encoded_as_if_it_were_not_there(encoder: TfidfEncoder) -> None:
    left_out, vectors = encoder.words.leave_out("good film, bad film, cats")
    assert left_out == ["good", "film", "bad", "cats"]
    without = ["film bad film cats", "good bad cats", "good film film cats", "good film bad film"]
    assert np.allclose(vectors, encode(encoder, without), atol=1e-5)
    assert encoder.words.leave_out("unheard of")[1].shape == (0, 4)
    alone = encoder.words.leave_out("good good")[1]
    assert np.allclose(alone, 0)


def test_a_file_holds_all_of_it(tmp_path: Path, encoder: TfidfEncoder) -> None:
    encoder.save(tmp_path / "words.safetensors")
    again = TfidfEncoder.load(tmp_path / "words.safetensors")
    assert again.fingerprint == encoder.fingerprint
    assert np.array_equal(encode(again, MORE), encode(encoder, MORE))
    assert TfidfEncoder.fit(TEXTS[:4], components=4).fingerprint != encoder.fingerprint
    (tmp_path / "words.safetensors").write_bytes(b"no")
    with pytest.raises(FileFormatError, match="damaged"):
        TfidfEncoder.load(tmp_path / "words.safetensors")


def test_texts_are_utf_8(encoder: TfidfEncoder) -> None:
    assert encoder.prepare("é".encode()) == "é"
    with pytest.raises(DataError, match="UTF-8"):
        encoder.prepare(b"\xff")
