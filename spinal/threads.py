"""Limits on the number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import threadpoolctl


@contextmanager
def single_thread() -> Iterator[None]:
    """Compute with one thread inside the block; the numbers of threads are restored after it.

    With one thread, sums are always added up in the same order, so the same seed gives the same
    numbers. The limits apply to torch and to the thread pools of the linear algebra libraries.
    """
    import torch  # importing this module is cheap

    threads = torch.get_num_threads()
    try:
        with threadpoolctl.threadpool_limits(1):
            torch.set_num_threads(1)
            yield
    finally:
        torch.set_num_threads(threads)
