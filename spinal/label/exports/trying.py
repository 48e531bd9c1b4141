"""The process that tries the model of a project on single images or texts.

``python -m spinal.label.exports.trying HOME`` reads requests from standard input, one after the
other: a line of JSON and the content of a file. It replies with a line of JSON and the result, also
JSON: ``classes``, ``probs`` and ``log_density``. Images are decoded in another process, with limits
on memory and time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.errors import DataError, SpinalError
from spinal.files import CHECKSUMS
from spinal.label.exports.fitted import load_classifier, load_text_classifier
from spinal.label.learning.guarded import guard
from spinal.label.store.project import Project, open_project

Predicted = tuple[tuple[str, ...], NDArray[np.float32], NDArray[np.float32]]


class Trial:
    """The newest model of a project, which is loaded again when there is a newer one.

    Args:
        project: the project.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._loaded: tuple[int, Callable[[bytes], Predicted]] | None = None

    def __call__(self, content: bytes) -> dict[str, Any]:
        """The prediction for the content of a file.

        Raises:
            SpinalError: if there is no model yet, or the content cannot be used.
        """
        try:
            version = (self.project.model_folder / CHECKSUMS).stat().st_mtime_ns
        except OSError:
            version = -1
        if self._loaded is None or self._loaded[0] != version:
            self._loaded = version, self._load()
        classes, probs, log_density = self._loaded[1](content)
        return {
            "classes": list(classes),
            "probs": [round(float(p), 4) for p in probs[0]],
            "log_density": float(log_density[0]),
        }

    def _load(self) -> Callable[[bytes], Predicted]:
        if self.project.texts is not None:
            of_texts = load_text_classifier(self.project)

            def predict_text(content: bytes) -> Predicted:
                try:
                    text = content.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError("not a text in UTF-8") from error
                return of_texts.classes, *of_texts.predict_texts([text])

            return predict_text
        of_images = load_classifier(self.project)
        encoder = guard(of_images.encoder, self.project.previews.decoders)

        def predict_image(content: bytes) -> Predicted:
            features = encoder.embed([encoder.prepare(content)])
            return of_images.classes, *of_images.predict(features)

        return predict_image


def main(home: str) -> None:
    """Reply to requests until standard input ends."""
    torch.set_num_threads(1)  # affects only this process
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    trial = Trial(open_project(home))
    while line := requests.readline():
        content = requests.read(json.loads(line)["bytes"])
        try:
            result = json.dumps(trial(content)).encode()
            reply: dict[str, Any] = {"bytes": len(result)}
        except SpinalError as error:
            result, reply = b"", {"error": str(error)}
        replies.write(json.dumps(reply).encode() + b"\n" + result)
        replies.flush()
    trial.project.close()


if __name__ == "__main__":
    main(sys.argv[1])
