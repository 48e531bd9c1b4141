"""Make the reference values of the parity test; run with the Python that has libspn-keras.

    python benchmarks/peers/libspn_reference.py tests/fixtures/libspn_keras.json

They are computed in float64: at values near -800, float32 resolves no more than 6e-5.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from circuit_libspn import VERSIONS, build
from parameters import draw_parameters, draw_points

POINTS = 8
SEED = 2
GRIDS = ((16, 8), (16, 32))


def main() -> None:
    """Write ``log p(z, c)`` for every grid, with what made it."""
    cases = []
    for grid in GRIDS:
        model = build(grid, draw_parameters(grid, SEED), dtype="float64")
        z, _ = draw_points(grid, POINTS, SEED + 1)
        log_joint = model(z.astype(np.float64).reshape(-1, *grid, 1)).numpy()
        assert log_joint.dtype == np.float64
        cases.append({"grid": grid, "log_joint": log_joint.round(9).tolist()})
    reference = {
        "made_by": "benchmarks/peers/libspn_reference.py",
        "versions": VERSIONS,
        "parameters_seed": SEED,
        "points_seed": SEED + 1,
        "points": POINTS,
        "cases": cases,
    }
    Path(sys.argv[1]).write_text(json.dumps(reference, indent=1) + "\n")


if __name__ == "__main__":
    main()
