"""Few-shot recognition of glyphs with first-order MAML: an inner optimizer per task."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image

FAULTS = {
    "anomaly": "checks of all gradients for NaN, left on after debugging",
    "curve": "accuracy on the query set after each inner step",
    "rotation": "glyphs rotated one by one with PIL although the rotated classes never change",
}
on = set(sys.argv[1:])

WAYS, SHOTS, QUERIES, TASKS, INNER = 5, 2, 3, 2, 3
SIZE, ALPHABET, DRAWERS = 28, 60, 10
WARMUP, STEPS = 4, 60


def draw_glyphs():
    rng = np.random.default_rng(0)
    base = rng.random((ALPHABET, 1, 7, 7)) > 0.6
    drawn = base ^ (rng.random((ALPHABET, DRAWERS, 7, 7)) > 0.95)
    big = drawn.repeat(8, axis=2).repeat(8, axis=3)
    return (big * 255).astype(np.uint8)


class Episodes:
    """Classes are glyphs turned by 0, 90, 180 or 270 degrees, as in Omniglot."""

    def __init__(self, glyphs):
        self.glyphs = glyphs
        self.rng = np.random.default_rng(1)
        self.turned = None
        if "rotation" not in on:
            shape = (4, ALPHABET, DRAWERS, 1, SIZE, SIZE)
            self.turned = np.empty(shape, dtype=np.float32)
            for index in np.ndindex(shape[:3]):
                self.turned[index] = self.load(*index)
            self.turned = torch.from_numpy(self.turned)

    def load(self, turn, glyph, drawer):
        image = Image.fromarray(self.glyphs[glyph, drawer])
        image = image.rotate(90.0 * turn, Image.BICUBIC)  # fault: rotation
        image = image.resize((SIZE, SIZE), Image.LANCZOS)  # fault: rotation
        return np.asarray(image, dtype=np.float32)[None] / 255.0

    def sample(self):
        classes = self.rng.choice(4 * ALPHABET, WAYS, replace=False)
        drawers = np.stack([self.rng.permutation(DRAWERS)[: SHOTS + QUERIES] for _ in range(WAYS)])
        turns, glyphs = np.divmod(classes, ALPHABET)
        if self.turned is not None:
            images = self.turned[turns[:, None], glyphs[:, None], drawers]
        else:
            rows = zip(turns, glyphs, drawers)
            images = [[self.load(t, g, d) for d in row] for t, g, row in rows]  # fault: rotation
            images = torch.from_numpy(np.array(images))
        labels = torch.arange(WAYS)[:, None].expand(-1, SHOTS + QUERIES)
        support = images[:, :SHOTS].flatten(0, 1), labels[:, :SHOTS].flatten()
        query = images[:, SHOTS:].flatten(0, 1), labels[:, SHOTS:].flatten()
        return support, query


def conv_block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs, track_running_stats=False),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )


def conv4(width=24):
    return nn.Sequential(
        conv_block(1, width),
        conv_block(width, width),
        conv_block(width, width),
        nn.Flatten(),
        nn.Linear(width * 9, WAYS),
    )


torch.manual_seed(0)
if "anomaly" in on:
    torch.autograd.set_detect_anomaly(True)  # fault: anomaly
episodes = Episodes(draw_glyphs())
meta, learner = conv4(), conv4()
meta_optimizer = torch.optim.Adam(meta.parameters(), lr=1e-3)
meta_params, params = list(meta.parameters()), list(learner.parameters())


def adapt(support, query):
    """Take the inner steps from the meta weights; return the gradient of the query loss."""
    with torch.no_grad():
        for p, start in zip(params, meta_params):
            p.copy_(start)
    inner_optimizer = torch.optim.SGD(params, lr=0.05)
    accuracies = []
    for _ in range(INNER):
        loss = F.cross_entropy(learner(support[0]), support[1])  # fault: anomaly
        grads = torch.autograd.grad(loss, params)  # fault: anomaly
        for p, g in zip(params, grads):
            p.grad = g.detach()
        inner_optimizer.step()
        if "curve" in on:
            with torch.no_grad():
                guess = learner(query[0]).argmax(1)  # fault: curve
                accuracies.append((guess == query[1]).float().mean().item())
    logits = learner(query[0])
    query_loss = F.cross_entropy(logits, query[1])
    accuracies.append((logits.detach().argmax(1) == query[1]).float().mean().item())
    return query_loss.detach(), torch.autograd.grad(query_loss, params), accuracies


for step in range(WARMUP + STEPS):
    if step == WARMUP:
        started = time.perf_counter()
    for p in meta_params:
        p.grad = None
    for _ in range(TASKS):
        support, query = episodes.sample()  # fault: rotation
        loss, grads, accuracies = adapt(support, query)  # fault: anomaly  # fault: curve
        for p, g in zip(meta_params, grads):
            p.grad = g / TASKS if p.grad is None else p.grad.add_(g, alpha=1 / TASKS)
    meta_optimizer.step()
    if step % 20 == 0:
        curve = " ".join(f"{a:.2f}" for a in accuracies)
        print(f"meta step {step}: query loss {loss.item():.3f}, accuracies {curve}")

seconds = time.perf_counter() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * TASKS}")
