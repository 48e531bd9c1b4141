"""Run the loop of a library, and print what it took: ``worker.py LIBRARY DATA SEED``."""

import importlib
import json
import resource
import sys
import time
import warnings

import numpy as np


def main() -> None:
    """Print accuracies at 100 and 300 labels, CPU seconds, and the growth of memory."""
    library, path, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    warnings.simplefilter("ignore")
    data = np.load(path)
    first = np.random.default_rng(seed).permutation(len(data["train_y"]))[:20]
    run = importlib.import_module(f"loop_{library}").run
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    accuracies = {}
    for n_labels, predict in run(data["train_x"], data["train_y"], first, seed):
        if n_labels in (100, 300):
            accuracies[str(n_labels)] = float(np.mean(predict(data["test_x"]) == data["test_y"]))
    seconds = time.process_time() - start
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps({**accuracies, "seconds": seconds, "megabytes": growth}))


if __name__ == "__main__":
    main()
