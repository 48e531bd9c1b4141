"""BatchBALD: the batch whose labels together are most informative about the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.labellings import Labellings
from spinal.acquisition.ranking import top
from spinal.acquisition.scores import bald

#: Candidates that are evaluated together.
_BLOCK = 64
#: An earlier estimate of a gain may be too low by this many (worst-case) standard errors.
_DOUBT = 2.0
#: Nats that float32 cannot distinguish from 0.
_ROUNDING = 1e-6
#: If a gain is below this share of the first one, the posterior samples are used up.
_USED_UP = 1e-2


@dataclass(frozen=True)
class BatchBALD(Acquisition):
    r"""Greedily picks the point that adds most to :math:`I(y_S; \omega)` (Kirsch et al., 2019).

    Unlike BALD, it does not choose two points with the same information. It is exact while there
    are at most M possible labellings of the batch, that is, for the first :math:`1 + \log_C M`
    points; after that, M labellings are drawn at random. See `spinal.acquisition.labellings`.

    **A batch cannot contain more than log K nats of information** about K samples. After that,
    all further points look equally good. So when a point would add less than a hundredth of the
    gain of the first one, the rest of the batch is chosen as a new batch, from the remaining
    points. More posterior samples delay this.

    Args:
        labellings: M. Time is proportional to it.
        buffer: How many float32 numbers are in memory at once, for a pool of any size. Slightly
            more than the processor's cache is best.
    """

    labellings: int = 10_000
    buffer: int = 1 << 21

    needs: ClassVar[frozenset[str]] = frozenset({"log_probs"})

    @property
    def compares_samples(self) -> bool:
        return True

    def __post_init__(self) -> None:
        if self.labellings < 1 or self.buffer < 1:
            raise AcquisitionError("labellings and buffer must be at least 1")

    def _pick(self, candidates: Candidates, b: int, generator: torch.Generator) -> Tensor:
        assert candidates.log_probs is not None
        return batchbald(candidates.log_probs, b, generator, self.labellings, self.buffer)[0]


def batchbald(
    log_probs_N_K_C: Tensor,
    b: int,
    generator: torch.Generator,
    labellings: int = 10_000,
    buffer: int = 1 << 21,
    lazy: bool = True,
) -> tuple[Tensor, Tensor]:
    """Positions ``[b]``, and the information in nats that each adds to the earlier ones.

    With ``lazy=False`` every candidate is evaluated at every step, for comparison.
    """
    alone_N = bald(log_probs_N_K_C).cpu()
    picks: list[int] = []
    gains: list[float] = []
    while len(picks) < b:
        known = Labellings(log_probs_N_K_C.shape[1], labellings, buffer, log_probs_N_K_C.device)
        batch = _one_batch(log_probs_N_K_C, alone_N, b - len(picks), known, generator, lazy)
        for pick, gain in batch:
            picks.append(pick)
            gains.append(gain)
            alone_N[pick] = -torch.inf
    return torch.tensor(picks), torch.tensor(gains, dtype=torch.float64)


def _one_batch(
    log_probs_N_K_C: Tensor,
    alone_N: Tensor,
    b: int,
    known: Labellings,
    generator: torch.Generator,
    lazy: bool,
) -> list[tuple[int, float]]:
    """Positions and gains of ``b`` points, or fewer if the posterior samples are used up.

    ``alone_N`` are the gains of a first point, -inf where a point is taken.
    """
    highest = top(alone_N, b, generator)
    first = float(alone_N[highest[0]])
    if first <= _ROUNDING:  # no candidate is informative
        return [(int(i), float(alone_N[i])) for i in highest]
    batch = [(int(highest[0]), first)]
    _, samples, classes = log_probs_N_K_C.shape
    # A gain is a mean over M labellings of numbers from 0 to this, so its variance is at most
    # gain * most / M (Bhatia and Davis, 2000).
    most = math.log(min(samples, classes))
    bound_N = _upper(alone_N, most / known.limit)
    while len(batch) < b:
        latest = batch[-1][0]
        known.add(log_probs_N_K_C[latest], generator)
        bound_N[latest] = -torch.inf
        best = (-1, -torch.inf)
        for block in top(bound_N, len(bound_N), generator).split(_BLOCK):
            if bound_N[block[0]] <= (best[1] if lazy else -torch.inf):
                break
            gains_B = known.information(log_probs_N_K_C[block.to(log_probs_N_K_C.device)]).cpu()
            gains_B[bound_N[block] == -torch.inf] = -torch.inf
            bound_N[block] = _upper(gains_B, most / known.limit)
            highest_B = int(gains_B.argmax())
            if gains_B[highest_B] > best[1]:
                best = (int(block[highest_B]), float(gains_B[highest_B]))
        if best[1] < max(_ROUNDING, _USED_UP * first):
            break
        batch.append(best)
    return batch


def _upper(gains: Tensor, variance: float) -> Tensor:
    """Upper bounds for the estimates of these gains as the batch grows.

    True gains never increase as labels are added (the objective is submodular), so a point whose
    gain *was* below the best *is* still below it, and need not be evaluated. `_DOUBT` standard
    errors are added for estimates.
    """
    return gains + _DOUBT * (gains.clamp_min(0) * variance).sqrt() + _ROUNDING
