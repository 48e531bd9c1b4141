"""Batches and scores by batchbald_redux, in float64, for ``tests/acquisition/test_batchbald.py``.

PYTHON benchmarks/peers/acquisition_reference.py tests/acquisition/fixtures/batchbald_redux.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from batchbald_redux.batchbald import get_batchbald_batch

#: N, K, C, b, the number of labellings, and whether these are all there are.
CASES = [
    (30, 12, 4, 5, 10_000, "exact"),
    (40, 6, 2, 6, 10_000, "exact"),
    (12, 10, 3, 6, 2_000, "sampled"),
]


def main() -> None:
    """Write one file with all cases."""
    cases = []
    for n, k, c, b, num_samples, regime in CASES:
        generator = torch.Generator().manual_seed(n)
        features = torch.randn(n, 5, generator=generator, dtype=torch.float64)
        common = torch.randn(1, 5, c, generator=generator, dtype=torch.float64)
        weights = common + 0.4 * torch.randn(k, 5, c, generator=generator, dtype=torch.float64)
        logits = torch.einsum("nd,kdc->nkc", features, weights)
        # What the file holds is what both are given.
        rounded = [[[round(x, 4) for x in row] for row in point] for point in logits.tolist()]
        log_probs = torch.tensor(rounded, dtype=torch.float64).log_softmax(-1)
        torch.manual_seed(0)
        batch = get_batchbald_batch(log_probs, b, num_samples, dtype=torch.float64)
        cases.append(
            {
                "regime": regime,
                "num_samples": num_samples,
                "indices": batch.indices,
                "scores": batch.scores,
                "logits_N_K_C": rounded,
            }
        )
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
