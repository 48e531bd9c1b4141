"""The encoder of a project, and its features on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.data import Skipped
from spinal.encoders import Encoder, EncoderError, FeatureCache, ImageEncoder, load_encoder
from spinal.encoders.cache import vectors_of
from spinal.encoders.encoder import BATCH
from spinal.encoders.tfidf import NAME, TfidfEncoder
from spinal.encoders.vectors import StoredVectors
from spinal.errors import FileFormatError
from spinal.label.learning.guarded import guard
from spinal.label.store.project import Project
from spinal.label.store.texts import Texts


def is_fast(encoder: Encoder) -> bool:
    """Whether an encoder is fast enough (seconds for thousands of items) to encode all first."""
    return isinstance(encoder, TfidfEncoder)


def project_encoder(project: Project) -> Encoder:
    """The encoder of a project; TF-IDF is fitted to its texts once, and saved.

    Raises:
        EncoderError: if a package or a file is missing.
        DataError: if the texts have no words to fit to.
    """
    if project.settings.encoder != NAME:
        encoder = load_encoder(project.settings.encoder)
        if project.texts is not None and isinstance(encoder, ImageEncoder):
            raise EncoderError(f"{encoder.name} is for images, and {project.folder} holds texts")
        return encoder
    if project.texts is None:
        raise EncoderError(f"{NAME} is for texts, and {project.folder} holds images")
    try:
        return TfidfEncoder.load(project.words_file)
    except FileFormatError:
        pass  # none yet, or damaged
    project.texts.refresh()
    fitted = TfidfEncoder.fit(project.texts.all_texts(), seed=project.settings.seed)
    fitted.save(project.words_file)
    return fitted


def feature_cache(project: Project, encoder: Encoder) -> FeatureCache | TextCache:
    """The features of a project on disk."""
    if project.texts is not None:
        return TextCache(project.features_folder, encoder, project.texts)
    return FeatureCache(
        project.features_folder, guard(encoder, project.previews.decoders), threads=1
    )


class TextCache:
    """The vectors of a project's texts by one encoder, on disk; like `FeatureCache`.

    Args:
        folder: where vectors are stored.
        encoder: computes them.
        texts: the texts; vectors are stored under their names, which are hashes.
    """

    def __init__(self, folder: Path, encoder: Encoder, texts: Texts) -> None:
        self.encoder, self._texts = encoder, texts
        self.vectors = vectors_of(folder, encoder)

    def close(self) -> None:
        """Close the files."""
        self.vectors.close()

    def compute(
        self,
        names: Iterable[str | Path],
        on_progress: Callable[[int, int], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> list[Skipped]:
        """Compute missing vectors; each batch is stored when it is done. No text is skipped."""
        hashes = [bytes.fromhex(str(name)) for name in names]
        todo = [content for content in hashes if self.vectors.find(content) is None]
        done = len(hashes) - len(todo)
        for start in range(0, len(todo), BATCH):
            if should_stop is not None and should_stop():
                break
            batch = todo[start : start + BATCH]
            texts = [self.encoder.prepare(self._texts.text(content.hex())) for content in batch]
            self.vectors.add(batch, self.encoder.embed(texts))
            if on_progress is not None:
                on_progress(done + start + len(batch), len(hashes))
        return []

    def points(self, names: Iterable[str | Path]) -> tuple[StoredVectors, NDArray[np.bool_]]:
        """The stored vectors, and which of the N names have one, bool ``[N]``."""
        places = self.vectors.places(bytes.fromhex(str(name)) for name in names)
        return StoredVectors(self.vectors, places[places >= 0]), places >= 0
