"""A recurrent network learns to predict the next token of a text, in chunks with a state."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Iterator, Set

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "cells_in_loop": Fault("rnn-cells-in-loop", kind="recurrent cells in a Python loop"),
    "read_one_by_one": Fault("python-loop-indexing"),
    "zero_fill": Fault("zero-grad-memset"),
    "one_by_one": Fault("cpu-optimizer-not-fused"),
}
PAIRS = (
    ("cells_in_loop",),
    ("read_one_by_one",),
    ("zero_fill",),
    ("one_by_one",),
    ("read_one_by_one", "one_by_one"),
    ("cells_in_loop", "zero_fill", "one_by_one"),
)
SEED = 20_303
STREAMS = 6
LENGTH = 32
TOKENS = 4_000
WIDTH = 128
DEPTH = 2
LARGEST_NORM = 0.5
SMOOTHING = 0.01
States = list[tuple[Tensor, Tensor]]


def chunks() -> Iterator[tuple[Tensor, Tensor]]:
    """Yields inputs and targets of one chunk after the other, the streams in columns."""
    text = torch.randint(TOKENS, (200 * LENGTH + 1, STREAMS))
    while True:
        for begin in range(0, len(text) - LENGTH, LENGTH):
            yield text[begin : begin + LENGTH], text[begin + 1 : begin + LENGTH + 1]


class CellLayer(nn.Module):
    """A layer of which a cell is called for one time step after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)

    @override
    def forward(
        self, inputs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        outputs = []
        hidden, cell = state[0].squeeze(0), state[1].squeeze(0)
        for time in range(len(inputs)):
            hidden, cell = self.cell(inputs[time], (hidden, cell))
            outputs.append(hidden)
        return torch.stack(outputs), (hidden.unsqueeze(0), cell.unsqueeze(0))


class LanguageModel(nn.Module):
    """Embeddings, recurrent layers with dropout between them, and scores of all tokens."""

    def __init__(self, *, has_cells: bool) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.dropout = nn.Dropout(0.2)
        self.layers = nn.ModuleList(
            CellLayer() if has_cells else nn.LSTM(WIDTH, WIDTH) for _ in range(DEPTH)
        )
        self.scores = nn.Linear(WIDTH, TOKENS)

    @override
    def forward(self, inputs: Tensor, states: States) -> tuple[Tensor, States]:
        hidden = self.tokens(inputs)
        last_states = []
        for layer, state in zip(self.layers, states, strict=True):
            hidden, last = layer(self.dropout(hidden), state)
            last_states.append((last[0].detach(), last[1].detach()))
        return self.scores(self.dropout(hidden)), last_states


class RunningLoss:
    """A running mean of the tokens' losses, and the number of tokens among the best five."""

    def __init__(self) -> None:
        self.mean = 0.0
        self.hits = 0

    def read_one_by_one(self, losses: Tensor, best: Tensor, targets: Tensor) -> None:
        """Adds one token after the other."""
        for index in range(len(losses)):
            self.mean += SMOOTHING * (losses[index].item() - self.mean)
            if targets[index] in best[index]:
                self.hits += 1

    def read(self, losses: Tensor, best: Tensor, targets: Tensor) -> None:
        """Adds all tokens."""
        rest = (1 - SMOOTHING) ** len(losses)
        self.mean = rest * self.mean + (1 - rest) * losses.mean().item()
        self.hits += int((best == targets[:, None]).sum())


def first_states() -> States:
    """Returns zeros for each layer."""
    return [(torch.zeros(1, STREAMS, WIDTH), torch.zeros(1, STREAMS, WIDTH)) for _ in range(DEPTH)]


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    model = LanguageModel(has_cells="cells_in_loop" in faults)
    fused = None if "one_by_one" in faults else True
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=fused)
    running = RunningLoss()
    read = running.read_one_by_one if "read_one_by_one" in faults else running.read
    states = first_states()
    text = chunks()
    while steps.remain:
        inputs, targets = next(text)
        optimizer.zero_grad(set_to_none="zero_fill" not in faults)
        scores, states = model(inputs, states)
        scores, targets = scores.flatten(0, 1), targets.flatten()
        losses = functional.cross_entropy(scores, targets, reduction="none")
        losses.mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
        optimizer.step()
        read(losses.detach(), scores.detach().topk(5, dim=1).indices, targets)
        steps.step()
