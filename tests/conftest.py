"""What holds for all tests."""

from __future__ import annotations

import os

# The processes of pytest-xdist share the cores: with several threads each they are much slower.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
