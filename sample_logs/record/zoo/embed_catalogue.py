"""Batch job: embeds the product photos of a catalogue for a search index.

Writes the patch tokens as one tensor (for re-ranking) and the pooled vectors of all products.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "full_size_decode": "JPEG photos decoded at full size and then resized",
    "cat_each_step": "results of all batches so far concatenated anew after each batch",
    "json_items": "vectors written as JSON text and synced to disk item by item",
}
PHOTOS = 96
BATCH_SIZE = 8
WARMUP_BATCHES = 5
TIMED_BATCHES = 80
SIDE = 112
PATCH = 16
WIDTH = 192

log = logging.getLogger("embed")


def write_photos(folder: Path) -> list[Path]:
    """Make photos of 800 x 600 pixels: smooth colours and some texture."""
    rng = np.random.default_rng(0)
    paths = []
    for number in range(PHOTOS):
        coarse = Image.fromarray(rng.integers(0, 255, (6, 8, 3), dtype=np.uint8))
        photo = np.asarray(coarse.resize((800, 600), Image.Resampling.BILINEAR)).copy()
        photo[::7] //= 2
        paths.append(folder / f"{number:05d}.jpg")
        Image.fromarray(photo).save(paths[-1], quality=88)
    return paths


class Photos(Dataset):
    def __init__(self, paths: list[Path], length: int, faults: set[str]) -> None:
        self.paths = paths
        self.length = length
        self.faults = faults

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[int, Tensor]:
        with Image.open(self.paths[index % len(self.paths)]) as image:
            if "full_size_decode" not in self.faults:
                image.draft("RGB", (SIDE, SIDE))  # the decoder scales down by 2, 4 or 8
            image = image.convert("RGB")  # fault: full_size_decode
            image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)  # fault: full_size_decode
        return index, torch.from_numpy(np.array(image)).permute(2, 0, 1)


class Encoder(nn.Module):
    """A small vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.positions = nn.Parameter(torch.randn((SIDE // PATCH) ** 2, WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)

    def forward(self, images: Tensor) -> Tensor:
        pixels = images.float().div(127.5).sub(1)
        tokens = self.patches(pixels).flatten(2).transpose(1, 2)
        return self.layers(tokens + self.positions)


def write_vectors(output: Path, file, ids: Tensor, vectors: Tensor, faults: set[str]) -> None:
    if "json_items" in faults:
        for number, vector in zip(ids, vectors):
            record = {"id": number.item(), "vector": vector.tolist()}
            file.write(json.dumps(record) + "\n")  # fault: json_items
            file.flush()  # fault: json_items
            os.fsync(file.fileno())  # fault: json_items
    else:
        np.save(output / f"vectors_{ids[0].item():06d}.npy", vectors.numpy())


@torch.inference_mode()
def embed(loader: DataLoader, encoder: Encoder, output: Path, faults: set[str]) -> float:
    tokens: list[Tensor] = []
    all_tokens = torch.empty(0)
    start = 0.0
    with (output / "vectors.jsonl").open("w") as file:
        for batch, (ids, images) in enumerate(loader):  # fault: full_size_decode
            if batch == WARMUP_BATCHES:
                start = time.perf_counter()
            encoded = encoder(images)
            write_vectors(output, file, ids, encoded.mean(dim=1), faults)
            if "cat_each_step" in faults:
                all_tokens = torch.cat([all_tokens, encoded])  # fault: cat_each_step
            else:
                tokens.append(encoded)
        if tokens:
            all_tokens = torch.cat(tokens)
    seconds = time.perf_counter() - start
    log.info("tokens %s, mean magnitude %.5f", tuple(all_tokens.shape), all_tokens.abs().mean())
    torch.save(all_tokens.half(), output / "tokens.pt")
    return seconds


def main() -> None:
    faults = set(sys.argv[1:])
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    torch.manual_seed(0)
    encoder = Encoder().eval()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_photos(Path(folder))
        photos = Photos(paths, (WARMUP_BATCHES + TIMED_BATCHES) * BATCH_SIZE, faults)
        loader = DataLoader(photos, BATCH_SIZE, num_workers=2)
        seconds = embed(loader, encoder, Path(folder), faults)
    print(f"steps={TIMED_BATCHES} seconds={seconds:.3f} samples={TIMED_BATCHES * BATCH_SIZE}")


if __name__ == "__main__":
    main()
