"""The active learner: tell it labels, fit, ask what to label next, predict. All else meets here."""

from spinal.learner.assessment import Assessment, Choice
from spinal.learner.learner import ActiveLearner
from spinal.learner.settings import LearnerSettings, NotFittedError, PoolDryError

__all__ = [
    "ActiveLearner",
    "Assessment",
    "Choice",
    "LearnerSettings",
    "NotFittedError",
    "PoolDryError",
]
