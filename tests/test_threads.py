"""One thread inside, as many as before outside."""

from __future__ import annotations

import pytest
import threadpoolctl
import torch

from spinal.threads import single_thread


def pools() -> list[int]:
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]


def test_thread_counts_are_restored() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        outside = pools()
        with single_thread():
            assert torch.get_num_threads() == 1
            assert set(pools()) <= {1}
        assert torch.get_num_threads() == 3
        assert pools() == outside
        with pytest.raises(ValueError, match="inside"):
            _fail()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@single_thread()
def _fail() -> None:
    raise ValueError("inside")
