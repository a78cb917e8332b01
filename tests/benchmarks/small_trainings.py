"""Twenty small trainings, with steps of 0.3 to 12 ms on one core of a CPU."""

# torch annotates neither Tensor.backward() nor its optimizers' constructors
# mypy: allow-untyped-calls, disable-error-code="no-any-return"

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

Step = Callable[[], object]
Loss = Callable[[Any, Any], Tensor]


def step_of(model: nn.Module, optimizer: Any, batch: Callable[[], Any], loss: Loss) -> Step:
    """One step of an optimizer over a batch."""

    def step() -> None:
        optimizer.zero_grad()
        loss(model, batch()).backward()
        optimizer.step()

    return step


def squares(model: Any, batch: Any) -> Tensor:
    return model(batch).square().mean()


def labels(count: int) -> Loss:
    """Cross entropy with fixed labels."""
    target = torch.randint(0, 4, (count,))
    return lambda model, batch: functional.cross_entropy(model(batch), target)


def layers(width: int, depth: int, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    parts = [part for _ in range(depth) for part in (nn.Linear(width, width), activation())]
    return nn.Sequential(*parts)


def narrow() -> Step:
    model, batch = layers(32, 8), torch.randn(8, 32)
    return step_of(model, torch.optim.AdamW(model.parameters()), lambda: batch, squares)


def wide() -> Step:
    model, batch = layers(256, 6), torch.randn(64, 256)
    return step_of(model, torch.optim.AdamW(model.parameters()), lambda: batch, squares)


def looping_optimizer() -> Step:
    model, batch = layers(32, 12), torch.randn(8, 32)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    return step_of(model, optimizer, lambda: batch, squares)


def convolutions() -> Step:
    blocks = [
        part
        for channels in (3, 16, 16, 16)
        for part in (nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
    ]
    model = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(16 * 256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batch = torch.randn(16, 3, 16, 16)
    return step_of(model, optimizer, lambda: batch, labels(16))


def transformer() -> Step:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    model, batch = nn.TransformerEncoder(layer, 2), torch.randn(8, 32, 64)
    return step_of(model, torch.optim.AdamW(model.parameters()), lambda: batch, squares)


def gru() -> Step:
    model, batch = nn.GRUCell(32, 64), torch.randn(20, 16, 32)

    def loss(cell: Any, sequence: Tensor) -> Tensor:
        state = torch.zeros(16, 64)
        for moment in sequence:
            state = cell(moment, state)
        return state.square().mean()

    return step_of(model, torch.optim.Adam(model.parameters()), lambda: batch, loss)


def pointwise() -> Step:
    weight, batch = nn.Parameter(torch.ones(64, 256)), torch.randn(64, 256)

    def loss(_: Any, values: Tensor) -> Tensor:
        for _ in range(12):
            values = torch.tanh(values * weight + 0.1) - values.sigmoid() * 0.5
        return values.mean()

    return step_of(nn.Module(), torch.optim.SGD([weight], lr=0.1), lambda: batch, loss)


def recommender() -> Step:
    embeddings = nn.ModuleList(nn.Embedding(200, 8) for _ in range(12))
    last, batch = nn.Linear(96, 1), torch.randint(0, 200, (64, 12))
    model = nn.ModuleList([embeddings, last])

    def loss(_: Any, ids: Tensor) -> Tensor:
        parts = [embedding(ids[:, column]) for column, embedding in enumerate(embeddings)]
        return last(torch.cat(parts, 1)).square().mean()

    return step_of(model, torch.optim.Adagrad(model.parameters()), lambda: batch, loss)


def rows() -> Step:
    model, batch = nn.Linear(32, 8), torch.randn(64, 32)

    def loss(linear: Any, values: Tensor) -> Tensor:
        out = linear(values)
        assert sum(float(row.max()) for row in out) is not None
        return out.mean()

    return step_of(model, torch.optim.SGD(model.parameters(), lr=0.1), lambda: batch, loss)


def batches_of(data: "Dataset[Any]", size: int) -> Iterator[Any]:
    """Batches without end, loaded in this process."""
    while True:
        yield from DataLoader(data, batch_size=size)


def loading() -> Step:
    model, batches = nn.Linear(64, 64), batches_of(TensorDataset(torch.randn(256, 64)), 32)
    optimizer = torch.optim.AdamW(model.parameters())
    return step_of(model, optimizer, lambda: next(batches)[0], squares)


class Residual(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.last_norm = nn.BatchNorm2d(16), nn.BatchNorm2d(16)

    def forward(self, images: Tensor) -> Tensor:
        inner = functional.relu(self.norm(self.first(images)))
        return functional.relu(images + self.last_norm(self.second(inner)))


def resnet() -> Step:
    blocks = [Residual() for _ in range(4)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)]
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), *blocks, *head)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    batch = torch.randn(8, 3, 24, 24)
    return step_of(model, optimizer, lambda: batch, labels(8))


class Attention(nn.Module):
    """A block of a language model with attention in single operators."""

    def __init__(self) -> None:
        super().__init__()
        self.projection, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
        self.norm, self.last_norm = nn.LayerNorm(64), nn.LayerNorm(64)
        self.inner = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))

    def forward(self, tokens: Tensor) -> Tensor:
        batch, length, width = tokens.shape
        heads = self.projection(self.norm(tokens)).view(batch, length, 3, 4, width // 4)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        hidden = torch.ones(length, length).tril() == 0
        scores = (query @ key.transpose(-1, -2) / 8).masked_fill(hidden, -1e9).softmax(-1)
        mixed = (scores @ value).transpose(1, 2).reshape(batch, length, width)
        tokens = tokens + self.out(mixed)
        return tokens + self.inner(self.last_norm(tokens))


def language() -> Step:
    blocks = [Attention() for _ in range(3)]
    model = nn.Sequential(nn.Embedding(256, 64), *blocks, nn.Linear(64, 256))
    batch = torch.randint(0, 256, (8, 33))

    def loss(network: Any, tokens: Tensor) -> Tensor:
        scores = network(tokens[:, :-1]).flatten(0, 1)
        return functional.cross_entropy(scores, tokens[:, 1:].flatten())

    return step_of(model, torch.optim.AdamW(model.parameters()), lambda: batch, loss)


def lstm() -> Step:
    cell, last, batch = nn.LSTMCell(48, 96), nn.Linear(96, 10), torch.randn(24, 24, 48)
    model, target = nn.ModuleList([cell, last]), torch.randint(0, 10, (24,))

    def loss(_: Any, sequence: Tensor) -> Tensor:
        state = torch.zeros(24, 96), torch.zeros(24, 96)
        for moment in sequence:
            state = cell(moment, state)
        return functional.cross_entropy(last(state[0]), target)

    return step_of(model, torch.optim.RMSprop(model.parameters()), lambda: batch, loss)


def autoencoder() -> Step:
    down = [nn.Conv2d(1, 16, 4, 2, 1), nn.GELU(), nn.Conv2d(16, 32, 4, 2, 1), nn.GELU()]
    up = [nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.GELU(), nn.ConvTranspose2d(16, 1, 4, 2, 1)]
    model, batch = nn.Sequential(*down, *up), torch.rand(16, 1, 28, 28)
    optimizer = torch.optim.Adam(model.parameters())
    return step_of(model, optimizer, lambda: batch, lambda net, x: functional.mse_loss(net(x), x))


def adversarial() -> Step:
    def network(first: int, last: int) -> nn.Module:
        parts = nn.Linear(first, 128), nn.LeakyReLU(), nn.Linear(128, 128), nn.LeakyReLU()
        return nn.Sequential(*parts, nn.Linear(128, last))

    generator, judge = network(16, 64), network(64, 1)
    optimizers = [torch.optim.Adam(model.parameters()) for model in (generator, judge)]
    real, one, zero = torch.randn(64, 64), torch.ones(64, 1), torch.zeros(64, 1)
    loss = functional.binary_cross_entropy_with_logits

    def step() -> None:
        images = generator(torch.randn(64, 16))
        optimizers[1].zero_grad()
        (loss(judge(real), one) + loss(judge(images.detach()), zero)).backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        loss(judge(images), one).backward()
        optimizers[0].step()

    return step


def half_precision() -> Step:
    parts = [nn.Sequential(nn.Linear(192, 192), nn.LayerNorm(192), nn.GELU()) for _ in range(5)]
    model, batch = nn.Sequential(*parts), torch.randn(48, 192)

    def loss(network: Any, values: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return network(values).float().square().mean()

    return step_of(model, torch.optim.AdamW(model.parameters()), lambda: batch, loss)


def accumulation() -> Step:
    model, batches = layers(96, 6, nn.SiLU), torch.randn(4, 32, 96)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        for batch in batches:
            (squares(model, batch) / 4).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


class Images(Dataset[Any]):
    """Images that NumPy augments."""

    def __init__(self) -> None:
        self._images = np.random.default_rng(0).random((512, 3, 16, 16), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self._images[index]
        image = image[:, :, ::-1].copy() if index % 2 else image
        return torch.from_numpy((image - image.mean()) / (image.std() + 1e-6)), index % 10


def augmentation() -> Step:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 196, 10))
    batches = batches_of(Images(), 16)

    def loss(network: Any, batch: Any) -> Tensor:
        return functional.cross_entropy(network(batch[0]), batch[1])

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return step_of(model, optimizer, lambda: next(batches), loss)


def graph_network() -> Step:
    model, edges = nn.ModuleList(nn.Linear(64, 64) for _ in range(4)), torch.randint(300, (2, 2000))
    nodes = torch.randn(300, 64)

    def loss(linears: Any, values: Tensor) -> Tensor:
        for linear in linears:
            messages = linear(values)[edges[0]]
            values = torch.zeros_like(values).index_add(0, edges[1], messages).relu() / 8
        return values.square().mean()

    return step_of(model, torch.optim.Adam(model.parameters()), lambda: nodes, loss)


def fine_tuning() -> Step:
    body, head = nn.Sequential(Attention(), Attention()), nn.Linear(64, 4)
    for parameter in body.parameters():
        parameter.requires_grad = False
    batch = torch.randn(8, 48, 64)
    target = torch.randint(0, 4, (8,))

    def loss(_: Any, tokens: Tensor) -> Tensor:
        return functional.cross_entropy(head(body(tokens).mean(1)), target)

    return step_of(head, torch.optim.AdamW(head.parameters()), lambda: batch, loss)


TRAININGS: dict[str, Callable[[], Step]] = {
    make.__name__: make
    for make in (
        *(narrow, wide, looping_optimizer, convolutions, transformer, gru, pointwise),
        *(recommender, rows, loading, resnet, language, lstm, autoencoder, adversarial),
        *(half_precision, accumulation, augmentation, graph_network, fine_tuning),
    )
}
