"""Small problems for classifiers."""

from __future__ import annotations

import torch
from torch import Tensor


def clouds(
    n: int = 120, d: int = 6, classes: int = 3, apart: float = 1.5, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Normal clouds with correlated features: ``x [n, d]`` and classes ``[n]``."""
    generator = torch.Generator().manual_seed(seed)
    centres = apart * torch.randn(classes, d, generator=torch.Generator().manual_seed(99)).double()
    shear = torch.eye(d).double() + 0.5 * torch.ones(d, d).double().tril(-1)
    y = torch.randint(classes, (n,), generator=generator)
    return centres[y] + torch.randn(n, d, generator=generator).double() @ shear, y
