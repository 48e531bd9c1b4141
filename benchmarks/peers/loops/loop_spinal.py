"""spinal, with its defaults."""

from spinal import ActiveLearner, Pool


def run(x, y, first, seed):
    """Yield the number of labels and a classifier after each round."""
    learner = ActiveLearner(Pool(x, 10), seed=seed)
    batch = first
    for n_labels in range(20, 301, 10):
        learner.tell(batch, y[batch])
        learner.fit()
        yield n_labels, learner.predict
        batch = learner.ask(10)
