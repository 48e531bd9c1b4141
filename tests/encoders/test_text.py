"""A text encoder of a few lines: the protocol, the cache and pools say nothing of pixels."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spinal import ActiveLearner, Pool
from spinal.encoders import EncodedPoints, Encoder, EncoderError, FeatureCache, encode, load_encoder
from spinal.encoders.naming import EncoderName
from spinal.encoders.table import ENCODERS
from spinal.errors import DataError
from spinal.networks import TrainSettings

TEXTS = [f"{word} number {i}" for i in range(20) for word in ("apple pear", "hammer saw")]


class HashedWords:
    """Counts of words, by a hash of each."""

    name = "hashed-words"
    fingerprint = "1"
    width = 32

    def __init__(self) -> None:
        self.embedded = 0

    def prepare(self, item: str | bytes) -> list[str]:
        try:
            text = item.decode() if isinstance(item, bytes) else item
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8 text") from error
        return text.lower().split()

    def embed(self, prepared: Sequence[list[str]]) -> NDArray[np.float32]:
        self.embedded += len(prepared)
        counts = np.zeros((len(prepared), self.width), np.float32)
        for row, words in enumerate(prepared):
            for word in words:
                counts[row, zlib.crc32(word.encode()) % self.width] += 1
        return counts


def load(_: EncoderName) -> HashedWords:
    return HashedWords()


def test_a_line_in_the_table_gives_it_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODERS, "hashed-words", load)
    encoder = load_encoder("hashed-words")
    assert isinstance(encoder, Encoder)
    assert encode(encoder, ["Pear apple pear"]).sum() == 3


def test_texts_in_memory_are_points_of_a_pool(tmp_path: Path) -> None:
    encoder = HashedWords()
    points = EncodedPoints([*TEXTS, TEXTS[0]], encoder, tmp_path)
    pool = Pool(points, ("fruit", "tool"))
    np.testing.assert_array_equal(
        pool.points[np.array([40, 3])], encode(encoder, [TEXTS[0], TEXTS[3]])
    )
    training = TrainSettings(min_steps=60, max_steps=60)
    learner = ActiveLearner(pool, ("dense", {"width": 0.125}), training=training, device="cpu")
    learner.tell(np.arange(10), np.arange(10) % 2)
    learner.fit()
    assert (learner.predict(points)[:40] == np.arange(40) % 2).mean() > 0.9
    assert encoder.embedded == 2 + len(TEXTS)  # the two above, and each text once
    EncodedPoints(TEXTS, encoder, tmp_path)[np.arange(len(TEXTS))]
    assert encoder.embedded == 2 + len(TEXTS)


def test_files_of_text_go_through_the_same_cache(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.txt" for i in range(4)]
    for file, text in zip(files, TEXTS, strict=False):
        file.write_text(text)
    files[3].write_bytes(b"\xff\xfe")
    encoder = HashedWords()
    cache = FeatureCache(tmp_path / "cache", encoder)
    (skipped,) = cache.compute(files)
    assert (skipped.path, skipped.reason) == (files[3], "not UTF-8 text")
    vectors, there = cache.get(files)
    assert there.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(vectors, encode(HashedWords(), TEXTS[:3]))
    cache.compute(files)
    assert encoder.embedded == 3


def test_vectors_of_another_width_are_never_written(tmp_path: Path) -> None:
    encoder = HashedWords()
    encoder.width = 16
    points = EncodedPoints(TEXTS, encoder, tmp_path)
    encoder.width = 32
    with pytest.raises(EncoderError, match=r"should give \[1, 16\]"):
        points[np.array([0])]
