"""baal: BALD by dropout in a network with one hidden layer."""

import numpy as np
import torch
from baal.active import ActiveLearningDataset
from baal.active.heuristics import BALD
from baal.bayesian.dropout import patch_module
from baal.modelwrapper import ModelWrapper, TrainingArgs
from torch import nn
from torch.utils.data import TensorDataset


def run(x, y, first, seed):
    """Yield the number of labels and a classifier after each round."""
    torch.manual_seed(seed)
    pool = ActiveLearningDataset(TensorDataset(torch.as_tensor(x), torch.as_tensor(y)))
    pool.label(np.sort(first).tolist())
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))
    network = patch_module(network)
    start = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    bald = BALD()

    def predict(z):
        with torch.no_grad():
            samples = torch.stack([network(torch.as_tensor(z)).softmax(-1) for _ in range(20)])
        return samples.mean(0).argmax(-1).numpy()

    for n_labels in range(20, 301, 10):
        network.load_state_dict(start)
        optimizer = torch.optim.Adam(network.parameters(), 1e-3)
        settings = TrainingArgs(
            criterion=nn.CrossEntropyLoss(),
            optimizer=optimizer,
            epoch=50,
            batch_size=32,
            use_cuda=False,
            workers=0,
        )
        model = ModelWrapper(network, settings)
        model.train_on_dataset(pool)
        yield n_labels, predict
        ranking = bald(model.predict_on_dataset(pool.pool, iterations=20))
        pool.label(ranking[:10].tolist())
