"""small-text: breaking ties with logistic regression; it wants sparse features."""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from small_text import (
    BreakingTies,
    PoolBasedActiveLearner,
    SklearnClassifierFactory,
    SklearnDataset,
)


def run(x, y, first, seed):
    """Yield the number of labels and a classifier after each round."""
    labels = np.arange(10)
    factory = SklearnClassifierFactory(LogisticRegression(max_iter=1000), 10)
    train = SklearnDataset(csr_matrix(x), y, target_labels=labels)
    learner = PoolBasedActiveLearner(factory, BreakingTies(), train)
    learner.initialize_data(first, y[first])

    def predict(z):
        unknown = np.zeros(len(z), int)
        return learner.classifier.predict(
            SklearnDataset(csr_matrix(z), unknown, target_labels=labels)
        )

    for n_labels in range(20, 301, 10):
        yield n_labels, predict
        batch = learner.query(num_samples=10)
        learner.update(y[batch])
