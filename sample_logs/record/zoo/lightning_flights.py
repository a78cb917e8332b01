"""Lightning on a table of flights: embeddings of the categorical columns and an MLP."""

import logging
import sys
import time
import warnings

import lightning as L
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler
from torchmetrics.classification import BinaryAUROC

FAULTS = {
    "rows": "samples taken from the data frame row by row",
    "one_hot": "embeddings as products of one-hot vectors and a matrix",
    "anomaly": "anomaly detection left switched on",
}
on = set(sys.argv[1:])

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

BATCH, WARMUP, STEPS = 128, 5, 120
CATEGORICAL = {
    "month": 12,
    "weekday": 7,
    "hour": 24,
    "carrier": 18,
    "origin": 340,
    "destination": 340,
    "tail_number": 3200,
}
NUMERIC = ["distance", "scheduled", "wind", "visibility", "precipitation", "pressure"]


def make_flights(n=18_000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({c: rng.integers(0, k, n) for c, k in CATEGORICAL.items()})
    for column in NUMERIC:
        frame[column] = rng.normal(size=n).astype("float32")
    score = frame["wind"] - frame["visibility"] + (frame["hour"] - 12) / 6
    frame["delayed"] = (score + rng.normal(size=n) > 1).astype("float32")
    return frame


class FrameDataset(Dataset):
    def __init__(self, frame):
        self.frame = frame

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, i):
        row = self.frame.iloc[i].to_numpy("float32")  # fault: rows
        cats, nums = row[: len(CATEGORICAL)], row[len(CATEGORICAL) : -1]  # fault: rows
        return torch.from_numpy(cats).long(), torch.from_numpy(nums), row[-1]


class TensorTable(Dataset):
    def __init__(self, frame):
        self.cats = torch.from_numpy(frame[list(CATEGORICAL)].to_numpy("int64"))
        self.nums = torch.from_numpy(frame[NUMERIC].to_numpy("float32"))
        self.target = torch.from_numpy(frame["delayed"].to_numpy("float32"))

    def __len__(self):
        return len(self.target)

    def __getitem__(self, rows):
        return self.cats[rows], self.nums[rows], self.target[rows]


class FlightsModule(L.LightningModule):
    def __init__(self, width=768):
        super().__init__()
        sizes = [min(48, (k + 1) // 2) for k in CATEGORICAL.values()]
        self.embeddings = nn.ModuleList(
            nn.Embedding(k, d) for k, d in zip(CATEGORICAL.values(), sizes, strict=True)
        )
        self.norm = nn.BatchNorm1d(len(NUMERIC))
        self.mlp = nn.Sequential(
            nn.Linear(sum(sizes) + len(NUMERIC), width),
            nn.ReLU(),
            nn.BatchNorm1d(width),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.BatchNorm1d(width),
            nn.Linear(width, 1),
        )
        self.auroc = BinaryAUROC()

    def embed(self, cats):
        columns = []
        for table, column in zip(self.embeddings, cats.unbind(1), strict=True):
            if "one_hot" in on:
                hot = F.one_hot(column, table.num_embeddings).float()  # fault: one_hot
                columns.append(hot @ table.weight)  # fault: one_hot
            else:
                columns.append(table(column))
        return columns

    def forward(self, cats, nums):
        return self.mlp(torch.cat([*self.embed(cats), self.norm(nums)], dim=1)).squeeze(1)

    def training_step(self, batch, batch_idx):
        cats, nums, target = batch
        logits = self(cats, nums)
        loss = F.binary_cross_entropy_with_logits(logits, target)
        self.log("train_loss", loss)
        self.auroc.update(logits.detach().sigmoid(), target.int())
        return loss

    def on_train_epoch_end(self):
        print(f"AUROC {self.auroc.compute():.3f}")
        self.auroc.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)


class Stopwatch(L.Callback):
    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if trainer.global_step == WARMUP:
            self.started = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step == WARMUP + STEPS:
            self.seconds = time.perf_counter() - self.started


L.seed_everything(0, verbose=False)
flights = make_flights()
if "rows" in on:
    loader = DataLoader(FrameDataset(flights), batch_size=BATCH, shuffle=True, drop_last=True)
else:
    table = TensorTable(flights)
    batches = BatchSampler(RandomSampler(table), BATCH, drop_last=True)
    loader = DataLoader(table, sampler=batches, batch_size=None)

watch = Stopwatch()
trainer = L.Trainer(
    max_steps=WARMUP + STEPS,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    gradient_clip_val=1.0,
    detect_anomaly="anomaly" in on,  # fault: anomaly
    callbacks=[watch],
)
trainer.fit(FlightsModule(), loader)
print(f"steps={STEPS} seconds={watch.seconds:.4f} samples={STEPS * BATCH}")
