"""Train a small classifier of images, and print the time of each epoch."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """1,600 images of 28 by 28 pixels in ten classes."""

    def __init__(self):
        random = np.random.default_rng(0)
        self.labels = random.integers(0, 10, size=1600)
        self.pixels = random.random((1600, 28, 28)) + self.labels[:, None, None] / 10

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        mean, std = self.pixels.mean(), self.pixels.std()
        image = (self.pixels[index] - mean) / std
        return torch.from_numpy(image)[None], self.labels[index]


def main():
    torch.manual_seed(0)
    loader = DataLoader(Images(), batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 14 * 14, 10),
    )
    model.double()  # the images are float64
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(2):
        start = time.perf_counter()
        for images, labels in loader:
            loss = loss_of(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
