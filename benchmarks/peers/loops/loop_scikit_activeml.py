"""scikit-activeml: margin sampling with logistic regression."""

import numpy as np
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import UncertaintySampling
from sklearn.linear_model import LogisticRegression


def run(x, y, first, seed):
    """Yield the number of labels and a classifier after each round."""
    known = np.full(len(y), np.nan)
    known[first] = y[first]
    classifier = SklearnClassifier(LogisticRegression(max_iter=1000), classes=range(10))
    strategy = UncertaintySampling(method="margin_sampling", random_state=seed)
    for n_labels in range(20, 301, 10):
        classifier.fit(x, known)
        yield n_labels, classifier.predict
        batch = strategy.query(x, known, clf=classifier, batch_size=10)
        known[batch] = y[batch]
