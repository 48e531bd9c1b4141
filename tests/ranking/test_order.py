"""The order of points over shards, against plain Python and one sort of everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spinal.ranking.merge import merged
from spinal.ranking.order import best_first, chances, draw

pa = pytest.importorskip("pyarrow")
WORD = 2**64


def splitmix64(state: int) -> int:
    """The generator of Steele et al., in whole numbers of Python."""
    z = (state + 0x9E3779B97F4A7C15) % WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
    return z ^ (z >> 31)


def test_chance_is_splitmix64() -> None:
    assert splitmix64(1234567) == 6457827717110365317  # as its authors' program prints it
    start = int(np.random.SeedSequence(7).generate_state(1, np.uint64)[0])
    positions = np.array([0, 1, 10**12])
    expected = [splitmix64((start + int(position)) % WORD) for position in positions]
    assert chances(positions, 7).tolist() == expected


def test_no_two_positions_share_their_chance() -> None:
    assert len(np.unique(chances(np.arange(200_000), 0))) == 200_000


@pytest.mark.parametrize("bucket", [1, 7, 40, 10_000])
def test_parts_are_merged_as_one_sort_does_it(tmp_path: Path, bucket: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, 300) / 4.0  # nearly all are tied
    positions = rng.permutation(300)
    parts = []
    for i, rows in enumerate(np.split(np.arange(300), [10, 11, 200])):
        order = rows[best_first(scores[rows], positions[rows], 3)]
        table = pa.table({"score": scores[order], "position": positions[order]})
        parts.append(tmp_path / f"{i}.arrow")
        with pa.ipc.new_file(parts[-1], table.schema) as file:
            file.write_table(table)
    tables = list(merged(parts, 3, bucket))
    found = pa.concat_tables(tables)
    order = sorted(range(300), key=lambda i: (-scores[i], int(chances(positions[i : i + 1], 3)[0])))
    assert found.column("position").to_pylist() == positions[order].tolist()
    if bucket < 100:
        assert max(map(len, tables)) < 300


def test_a_draw_is_uniform_and_leaves_out_what_is_known() -> None:
    known = np.array([3, 4])
    drawn = [draw(20, 6, seed, known) for seed in range(2_000)]
    counts = np.bincount(np.concatenate(drawn), minlength=20)
    assert all(len(np.unique(each)) == 6 for each in drawn)
    assert counts[known].tolist() == [0, 0]
    others = np.delete(counts, known)  # binomial: mean 667, standard deviation 21
    assert abs(others - 2_000 * 6 / 18).max() < 5 * 21
    assert draw(4, 10, 0, known).tolist() == [0, 1, 2]
