"""Tuning: settings chosen on the validation set, by the paper's procedure or by Optuna."""

from spinal.experiments.tuning.searches import OptunaSearch, PaperSearch
from spinal.experiments.tuning.tuner import PARTS, Tuned, tune, tuned_text

__all__ = ["PARTS", "OptunaSearch", "PaperSearch", "Tuned", "tune", "tuned_text"]
