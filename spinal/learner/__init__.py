"""The active learner: `ask` for points to label, `tell` their labels, `fit`, `predict`."""

from spinal.learner.advice import Advice
from spinal.learner.assessment import Assessment, Choice
from spinal.learner.callbacks import Callback, ProgressBar
from spinal.learner.learner import ActiveLearner
from spinal.learner.multi import MultiLearner
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
    "MultiLearner",
    "NotFittedError",
    "PoolDryError",
    "ProgressBar",
    "TensorBoard",
]
