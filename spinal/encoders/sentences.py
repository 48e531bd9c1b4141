"""Sentence encoders as ONNX files: ``sentences:FOLDER``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.encoders.encoder import EncoderError
from spinal.encoders.naming import EncoderName
from spinal.encoders.tfidf import read_text

#: Tokens of a text that are read, unless the name gives another number (``sentences:FOLDER@256``).
TOKENS = 128


class SentenceEncoder:
    """The mean of a transformer's outputs over the tokens of a text, scaled to length 1.

    Args:
        folder: contains ``tokenizer.json`` and ``onnx/model.onnx`` (or ``model.onnx``).
        tokens: how many tokens of a text are read.

    Attributes:
        width: D, the length of a vector.
        fingerprint: a hash of both files and the number of tokens.

    Raises:
        EncoderError: if a file or a package is missing.
    """

    def __init__(self, folder: Path, tokens: int = TOKENS) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EncoderError(
                f"sentence encoders need packages: pip install 'spinal[text]' ({error})"
            ) from error
        places = (folder / "onnx/model.onnx", folder / "model.onnx")
        model = next((path for path in places if path.is_file()), None)
        vocabulary = folder / "tokenizer.json"
        if model is None or not vocabulary.is_file():
            raise EncoderError(f"{folder}: needs tokenizer.json and onnx/model.onnx")
        self.name = f"sentences:{folder}@{tokens}"
        digest = hashlib.blake2b(f"{tokens}".encode(), digest_size=8)
        for path in (model, vocabulary):
            digest.update(path.read_bytes())
        self.fingerprint = digest.hexdigest()
        self._tokenizer: Any = Tokenizer.from_file(str(vocabulary))
        self._tokenizer.enable_truncation(tokens)
        self._tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model), options)
        self._inputs = {each.name for each in self._session.get_inputs()}
        self.width = self.embed(["a"]).shape[1]

    def prepare(self, item: str | bytes) -> str:
        """The text."""
        return read_text(item)

    def embed(self, prepared: Sequence[str]) -> NDArray[np.float32]:
        """The vectors ``[N, D]`` of N texts."""
        encoded = self._tokenizer.encode_batch(list(prepared))
        ids = np.array([tokens.ids for tokens in encoded], np.int64)
        mask = np.array([tokens.attention_mask for tokens in encoded], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}
        used = {name: value for name, value in inputs.items() if name in self._inputs}
        hidden_N_T_D = self._session.run(None, used)[0]
        mean = (hidden_N_T_D * mask[..., None]).sum(1) / mask.sum(1, keepdims=True).clip(1)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True).clip(1e-12)).astype(np.float32)


def load(name: EncoderName) -> SentenceEncoder:
    """The encoder in a folder."""
    folder = Path(name.plain.removeprefix("sentences:")).expanduser()
    return SentenceEncoder(folder, name.size or TOKENS)
