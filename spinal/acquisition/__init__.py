"""Acquisition functions: from class probabilities and features to a batch of points. No models.

>>> import torch
>>> from spinal.acquisition import Candidates, make_acquisition
>>> log_probs_N_K_C = torch.randn(100, 1, 10).log_softmax(-1)
>>> acquisition = make_acquisition("max-entropy")
>>> sorted(acquisition.needs)
['log_probs']
>>> generator = torch.Generator().manual_seed(0)
>>> candidates = Candidates(log_probs_N_K_C)
>>> len(acquisition.select(candidates, 5, generator))
5
"""

from spinal.acquisition.acquisition import Acquisition, AcquisitionError
from spinal.acquisition.candidates import Candidates
from spinal.acquisition.custom import Custom
from spinal.acquisition.table import ACQUISITIONS, describe_acquisition, make_acquisition

__all__ = [
    "ACQUISITIONS",
    "Acquisition",
    "AcquisitionError",
    "Candidates",
    "Custom",
    "describe_acquisition",
    "make_acquisition",
]
