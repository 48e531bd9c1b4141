"""A classifier of texts whose encoder is an ONNX model: one file, from tokens to probabilities."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest

from spinal import ActiveLearner, Pool
from spinal.encoders import encode, load_encoder
from spinal.encoders.sentences import OnnxSentences
from spinal.label.exports.onnx_file import ExportError
from spinal.label.exports.text_classifier import TextClassifier
from spinal.networks import TrainSettings
from spinal.posteriors import SPN
from tests.encoders.words_model import Tokenizer, write_model

TEXTS = ["apple", "apple pear", "saw", "saw saw pear", "pear", "saw apple saw", "pear pear"]
QUICK = TrainSettings(min_steps=30, max_steps=30)


@pytest.fixture
def classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TextClassifier:
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Tokenizer))
    write_model(tmp_path / "encoder")
    encoder = load_encoder(f"sentences:{tmp_path / 'encoder'}")
    pool = Pool(encode(encoder, TEXTS * 4), ("fruit", "tool"))
    learner = ActiveLearner(pool, ("dense", {"width": 0.25}), training=QUICK, device="cpu")
    learner.tell(np.arange(28), [int("saw" in text) for text in TEXTS * 4])
    learner.fit()
    assert isinstance(learner.posterior, SPN)
    return TextClassifier.join(learner.network, learner.posterior, pool.classes, encoder)


def test_the_file_takes_tokens(classifier: TextClassifier, tmp_path: Path) -> None:
    written = classifier.save(tmp_path / "model")
    assert {path.name for path in written} == {
        "classifier.safetensors", "standalone.py", "classifier.onnx", "tokenizer.json",
    }  # fmt: skip
    session = onnxruntime.InferenceSession(str(tmp_path / "model/classifier.onnx"))
    assert {each.name for each in session.get_inputs()} == {"input_ids", "attention_mask"}
    assert session.get_modelmeta().custom_metadata_map["classes"] == "fruit\ntool"
    texts = ["pear apple saw", "saw", "apple"]  # padded: the first has three tokens
    assert isinstance(classifier.encoder, OnnxSentences)
    tokens = classifier.encoder.tokenize(texts)
    del tokens["token_type_ids"]
    computed = session.run(["probabilities", "log_density"], tokens)
    expected = classifier.predict_texts(texts)
    np.testing.assert_allclose(computed[0], expected[0], atol=1e-4)
    np.testing.assert_allclose(computed[1], expected[1], rtol=1e-4, atol=1e-4)


@pytest.mark.long
def test_an_encoder_that_cannot_be_joined_is_named(
    classifier: TextClassifier, tmp_path: Path
) -> None:
    assert isinstance(classifier.encoder, OnnxSentences)
    classifier.encoder.model_file.write_bytes(b"damaged since it was loaded")
    with pytest.raises(ExportError, match="cannot become part of the ONNX file"):
        classifier.to_onnx(tmp_path / "classifier.onnx")


@pytest.mark.long
def test_an_encoder_that_computes_something_else_is_noticed(
    classifier: TextClassifier, tmp_path: Path
) -> None:
    assert isinstance(classifier.encoder, OnnxSentences)
    model = onnx.load(classifier.encoder.model_file)
    table = onnx.numpy_helper.to_array(model.graph.initializer[0]) * [1, -1]
    model.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(table.astype(np.float32), model.graph.initializer[0].name)
    )
    onnx.save(model, classifier.encoder.model_file)
    with pytest.raises(ExportError, match="differs from the classifier of features"):
        classifier.to_onnx(tmp_path / "classifier.onnx")
    assert not (tmp_path / "classifier.onnx").exists()
