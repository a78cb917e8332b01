"""Visual search: a Flask service that embeds photos of a request and looks up similar products."""

import base64
import io
import logging
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from flask import Flask, jsonify, request
from PIL import Image
from torch import nn

FAULTS = {
    "reload": "the weights loaded from the disk for each request",
    "single": "the photos of a request sent through the network one by one",
    "gallery": "the vectors of all products normalized again for each request",
}
on = set(sys.argv[1:])

SIDE, DIM, PRODUCTS, PHOTOS = 48, 128, 20_000, 6
WARMUP, STEPS = 5, 100
app = Flask(__name__)
folder = tempfile.TemporaryDirectory()
weights = Path(folder.name) / "embedder.pt"


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.down = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))  # fault: single
        return F.relu(out + self.down(x))  # fault: single


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.layers = nn.Sequential(
            Residual(16, 32, 2), Residual(32, 64, 2), Residual(64, 128, 2), Residual(128, 256, 1)
        )
        self.fc = nn.Linear(256, DIM)

    def forward(self, x):
        x = self.layers(F.relu(self.stem(x)))  # fault: single
        return self.fc(x.mean((2, 3)))


def load_model():
    model = Embedder()  # fault: reload
    model.load_state_dict(torch.load(weights, map_location="cpu"))  # fault: reload
    return model.eval()


torch.manual_seed(0)
torch.save(Embedder().state_dict(), weights)
model = load_model()
products = torch.randn(PRODUCTS, DIM)
normalized = F.normalize(products, dim=1)
names = [f"sku-{i:06d}" for i in range(PRODUCTS)]


def decode(text):
    photo = Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB")
    pixels = np.asarray(photo, dtype=np.float32) / 127.5 - 1
    return torch.from_numpy(pixels).permute(2, 0, 1)


def search(vectors, k=5):
    query = F.normalize(vectors, dim=1)
    if "gallery" in on:
        gallery = F.normalize(products, dim=1)  # fault: gallery
    else:
        gallery = normalized
    return (query @ gallery.T).topk(k, dim=1)


@app.route("/search", methods=["POST"])
def handle():
    photos = [decode(text) for text in request.get_json()["photos"]]
    net = load_model() if "reload" in on else model  # fault: reload
    with torch.inference_mode():
        if "single" in on:
            vectors = torch.cat([net(photo[None]) for photo in photos])  # fault: single
        else:
            vectors = net(torch.stack(photos))
        scores, index = search(vectors)
    results = [
        [{"sku": names[i], "score": round(s, 4)} for i, s in zip(row, values, strict=True)]
        for row, values in zip(index.tolist(), scores.tolist(), strict=True)
    ]
    return jsonify(results=results)


def make_requests(n=16):
    rng = np.random.default_rng(0)
    bodies = []
    for _ in range(n):
        photos = []
        for _ in range(PHOTOS):
            small = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
            buffer = io.BytesIO()
            small.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(buffer, "JPEG")
            photos.append(base64.b64encode(buffer.getvalue()).decode())
        bodies.append({"photos": photos})
    return bodies


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    client = app.test_client()
    bodies = make_requests()
    started, latencies = 0.0, []
    for i in range(WARMUP + STEPS):
        if i == WARMUP:
            started = time.perf_counter()
        sent = time.perf_counter()
        response = client.post("/search", json=bodies[i % len(bodies)])
        assert response.status_code == 200 and len(response.json["results"]) == PHOTOS
        latencies.append(1000 * (time.perf_counter() - sent))
    seconds = time.perf_counter() - started
    print("p50 %.1f ms, p95 %.1f ms" % tuple(np.percentile(latencies[WARMUP:], [50, 95])))
    folder.cleanup()
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * PHOTOS}")


if __name__ == "__main__":
    main()
