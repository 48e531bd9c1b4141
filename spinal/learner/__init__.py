"""The active learner: tell it labels, fit, ask which points to label next, predict."""

from spinal.learner.advice import Advice
from spinal.learner.assessment import Assessment, Choice
from spinal.learner.callbacks import Callback, ProgressBar
from spinal.learner.learner import ActiveLearner
from spinal.learner.settings import LearnerSettings, NotFittedError, PoolDryError
from spinal.learner.trackers import MLflow, TensorBoard

__all__ = [
    "ActiveLearner",
    "Advice",
    "Assessment",
    "Callback",
    "Choice",
    "LearnerSettings",
    "MLflow",
    "NotFittedError",
    "PoolDryError",
    "ProgressBar",
    "TensorBoard",
]
