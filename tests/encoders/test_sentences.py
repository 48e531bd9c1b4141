"""Sentence encoders from an ONNX file and from sentence-transformers, with a few words each."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from spinal import Pool
from spinal.encoders import EncodedPoints, EncoderError, encode, load_encoder
from tests.encoders.words_model import TABLE, WORDS, Tokenizer, write_model

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Tokenizer))
    write_model(tmp_path)
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


class SentenceTransformer(torch.nn.Module):
    """As far as it is used, with the words and the table from above."""

    def __init__(self, name: str, device: str) -> None:
        super().__init__()
        if name == "nobody/nothing":
            raise OSError("We couldn't connect\nto anything")
        self.table = torch.nn.Embedding.from_pretrained(torch.from_numpy(TABLE.copy()))
        self.to(device)
        self.max_seq_length = 2

    def encode(
        self, texts: list[str], normalize_embeddings: bool, show_progress_bar: bool
    ) -> np.ndarray:
        assert normalize_embeddings
        rows = [[WORDS.index(w) if w in WORDS else 0 for w in t.split()] for t in texts]
        means = [self.table.weight[row[: self.max_seq_length]].mean(0) for row in rows]
        return torch.nn.functional.normalize(torch.stack(means)).numpy()


def test_a_name_is_loaded_by_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(SentenceTransformer=SentenceTransformer)
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    encoder, shorter = (load_encoder(f"sentences:some/model{at}") for at in ("", "@1"))
    texts = ["saw", "apple pear pear"]
    long = np.array([0.5, 1]) / np.hypot(0.5, 1)
    np.testing.assert_allclose(encode(encoder, texts)[1], long, rtol=1e-6)
    np.testing.assert_allclose(encode(shorter, texts)[1], [1, 0], rtol=1e-6)
    assert (encoder.width, encoder.name, shorter.name) == (
        2, "sentences:some/model", "sentences:some/model@1",
    )  # fmt: skip
    assert load_encoder("sentences:some/model").fingerprint == encoder.fingerprint
    assert shorter.fingerprint != encoder.fingerprint
    monkeypatch.setitem(globals(), "TABLE", TABLE + 1)  # other weights under the same name
    assert load_encoder("sentences:some/model").fingerprint != encoder.fingerprint
    message = "cannot be loaded .We couldn't connect.; without a connection, give a folder"
    with pytest.raises(EncoderError, match=message):
        load_encoder("sentences:nobody/nothing")


def test_a_name_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EncoderError, match=r"pip install 'spinal\[text\]'"):
        load_encoder("sentences:some/model")


@pytest.mark.parametrize("name", ["./missing", "/a/b/c", "a/b/c", ""])
def test_a_path_that_is_missing_is_not_looked_up_in_the_hub(name: str) -> None:
    with pytest.raises(EncoderError, match="no such folder"):
        load_encoder(f"sentences:{name}")


def test_the_real_package_loads_a_transformer(tmp_path: Path) -> None:
    """A transformer with random weights, saved as the Hub has them, without an ONNX file."""
    pytest.importorskip("sentence_transformers")
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    tokenizer.save_pretrained(tmp_path)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32,
    )  # fmt: skip
    model = transformers.BertModel(config).eval()
    model.save_pretrained(tmp_path)
    encoder = load_encoder(f"sentences:{tmp_path}", device="cpu")
    with torch.no_grad():
        hidden_T_D = model(**tokenizer(["apple saw"], return_tensors="pt")).last_hidden_state[0]
    wanted = torch.nn.functional.normalize(hidden_T_D.mean(0), dim=0)
    np.testing.assert_allclose(encode(encoder, ["apple saw"])[0], wanted, atol=1e-5)
