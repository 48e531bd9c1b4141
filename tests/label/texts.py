"""Tables of small texts for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

#: Words that are more frequent in texts of each class.
TOPICS = {
    "sport": ["goal", "team", "match", "score", "player", "league", "referee", "coach"],
    "food": ["soup", "bread", "oven", "salt", "recipe", "kitchen", "pepper", "dinner"],
}
COMMON = ["today", "people", "great", "long", "after", "first", "small", "city", "morning", "house"]
CLASSES = tuple(TOPICS)


def make_texts(n: int = 60, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts of two topics, and their classes."""
    rng = np.random.default_rng(seed)
    labels = [CLASSES[i % 2] for i in range(n)]
    texts = []
    for i, label in enumerate(labels):
        own, others = rng.choice(TOPICS[label], 4), rng.choice(COMMON, 8)
        texts.append(f"Number {i}: " + " ".join(rng.permutation([*own, *others])) + ".")
    return texts, labels


def write_table(path: Path, texts: list[str], column: str = "body") -> None:
    pd.DataFrame({"id": range(len(texts)), column: texts}).to_csv(path, index=False)
