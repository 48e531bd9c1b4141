"""modAL: margin sampling with logistic regression."""

import numpy as np
from modAL.models import ActiveLearner
from modAL.uncertainty import margin_sampling
from sklearn.linear_model import LogisticRegression


def run(x, y, first, seed):
    """Yield the number of labels and a classifier after each round."""
    classifier = LogisticRegression(max_iter=1000)
    learner = ActiveLearner(classifier, margin_sampling, X_training=x[first], y_training=y[first])
    left = np.setdiff1d(np.arange(len(y)), first)
    for n_labels in range(20, 301, 10):
        yield n_labels, learner.predict
        batch, _ = learner.query(x[left], n_instances=10)
        learner.teach(x[left[batch]], y[left[batch]])
        left = np.delete(left, batch)
