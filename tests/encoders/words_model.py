"""A sentence model of a few words, as an ONNX file, and a tokenizer for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

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


def write_model(folder: Path) -> None:
    """Write both files; the vector of a token is its row in `TABLE`."""
    import onnx

    (folder / "onnx").mkdir(parents=True)
    (folder / "tokenizer.json").write_text("words")
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
    onnx.save(model, folder / "onnx/model.onnx")
