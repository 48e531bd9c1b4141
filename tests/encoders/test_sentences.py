"""A sentence encoder from an ONNX file, with a vocabulary of a few words."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spinal import Pool
from spinal.encoders import EncodedPoints, EncoderError, encode, load_encoder

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

WORDS = ["pad", "apple", "pear", "saw"]
TABLE = np.array([[9, 9], [1, 0], [0, 2], [-1, 1]], np.float32)


class Tokenizer:
    """As far as it is used: words are looked up, and texts padded to the longest."""

    @classmethod
    def from_file(cls, path: str) -> Tokenizer:
        assert Path(path).read_text() == "words"
        return cls()

    def enable_truncation(self, tokens: int) -> None:
        self.tokens = tokens

    def enable_padding(self) -> None:
        pass

    def encode_batch(self, texts: list[str]) -> list[Any]:
        ids = [
            [WORDS.index(w) if w in WORDS else 0 for w in t.split()][: self.tokens] for t in texts
        ]
        longest = max(map(len, ids))
        return [
            SimpleNamespace(
                ids=i + [0] * (longest - len(i)),
                attention_mask=[1] * len(i) + [0] * (longest - len(i)),
            )
            for i in ids
        ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Tokenizer))
    (tmp_path / "onnx").mkdir()
    (tmp_path / "tokenizer.json").write_text("words")
    make, kind = onnx.helper, onnx.TensorProto
    graph = make.make_graph(
        [make.make_node("Gather", ["table", "input_ids"], ["hidden"])],
        "words",
        [make.make_tensor_value_info("input_ids", kind.INT64, ["n", "t"])],
        [make.make_tensor_value_info("hidden", kind.FLOAT, ["n", "t", 2])],
        [onnx.numpy_helper.from_array(TABLE, "table")],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "onnx/model.onnx")
    return tmp_path


def test_a_vector_is_the_mean_over_the_words_of_a_text(folder: Path) -> None:
    encoder = load_encoder(f"sentences:{folder}")
    texts = ["apple", "apple pear pear", "saw"]
    means = np.array([TABLE[[WORDS.index(w) for w in text.split()]].mean(0) for text in texts])
    wanted = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(encode(encoder, texts), wanted, rtol=1e-6)
    shorter = load_encoder(f"sentences:{folder}@1")
    np.testing.assert_allclose(encode(shorter, texts)[1], [1, 0], atol=1e-6)
    assert shorter.fingerprint != encoder.fingerprint


def test_a_pool_of_sentences_takes_new_texts(folder: Path) -> None:
    encoder = load_encoder(f"sentences:{folder}")
    pool = Pool(EncodedPoints(["apple", "pear"], encoder, folder / "cache"), 2)
    np.testing.assert_allclose(pool.points_like(["pear"])[np.arange(1)], [[0, 1]], atol=1e-6)


def test_what_is_missing_is_named(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"needs tokenizer.json and onnx/model.onnx"):
        load_encoder(f"sentences:{folder}")
