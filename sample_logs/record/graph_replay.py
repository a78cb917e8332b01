"""Decoding with a CUDA graph, and the same step without one: for a GPU.

`eager` calls each operator, so its trace has the operator of every kernel. `replayed` has two
spans: the capture of the graph with some replays, and replays alone, as a server's profiler records
them. There the host makes one call a step, and the operators are only in the capture. `several`
captures a graph for each of three batch sizes, with almost equal kernels, and replays them in turn.
"""

# torch does not annotate Stream().
# mypy: allow-untyped-calls

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from recording import Plan, Target, recorded, seeded, target

LAYERS = {"cpu": 2, "cuda": 8}
WIDTH = {"cpu": 64, "cuda": 2_048}
HEAD = 64
BATCH = 16
BATCHES = (4, 8, 16)
LONGEST = {"cpu": 32, "cuda": 1_024}
WORDS = 4_096
PLAN = Plan(active=6, stacks=True, modules=True)
CAPTURE_PLAN = Plan(wait=0, warmup=1, active=7, stacks=True, modules=True)
"""Its first recorded step captures the graph."""
REPLAY_PLAN = Plan(active=6, stacks=True, modules=True, is_next_span=True)
SEVERAL_PLAN = Plan(wait=0, warmup=1, active=10)


class Attention(nn.Module):
    """Attention of one new token to a cache of all tokens before it."""

    def __init__(self, width: int, batch: int, device: torch.device) -> None:
        super().__init__()
        longest = LONGEST[device.type]
        self.heads = width // HEAD
        self.keys: Tensor
        self.values: Tensor
        self.inputs = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        shape = (batch, self.heads, longest, HEAD)
        self.register_buffer("keys", torch.zeros(shape, dtype=torch.bfloat16, device=device))
        self.register_buffer("values", torch.zeros(shape, dtype=torch.bfloat16, device=device))

    @override
    def forward(self, rows: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        shape = (len(rows), 1, self.heads, HEAD)
        query, key, value = (
            part.view(shape).transpose(1, 2) for part in self.inputs(rows).chunk(3, dim=-1)
        )
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        mixed = functional.scaled_dot_product_attention(
            query, self.keys, self.values, attn_mask=mask
        )
        result: Tensor = self.output(mixed.transpose(1, 2).reshape(len(rows), 1, -1))
        return result


class Layer(nn.Module):
    """One layer of a decoder."""

    def __init__(self, width: int, batch: int, device: torch.device) -> None:
        super().__init__()
        self.attention = Attention(width, batch, device)
        self.norm_attention = nn.RMSNorm(width)
        self.norm_network = nn.RMSNorm(width)
        self.gate = nn.Linear(width, 4 * width, bias=False)
        self.rise = nn.Linear(width, 4 * width, bias=False)
        self.fall = nn.Linear(4 * width, width, bias=False)

    @override
    def forward(self, rows: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        rows = rows + self.attention(self.norm_attention(rows), position, mask)
        inner = self.norm_network(rows)
        result: Tensor = rows + self.fall(functional.silu(self.gate(inner)) * self.rise(inner))
        return result


class Decoder(nn.Module):
    """A decoder that appends a token to every sequence of a batch."""

    def __init__(self, batch: int, device: torch.device) -> None:
        super().__init__()
        width = WIDTH[device.type]
        self.places: Tensor
        self.words = nn.Embedding(WORDS, width)
        self.layers = nn.ModuleList(Layer(width, batch, device) for _ in range(LAYERS[device.type]))
        self.norm = nn.RMSNorm(width)
        self.register_buffer("places", torch.arange(LONGEST[device.type], device=device))

    @override
    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        rows = self.words(tokens)
        mask = (self.places <= position)[None, None, None, :]
        for layer in self.layers:
            rows = layer(rows, position, mask)
        scores = functional.linear(self.norm(rows[:, -1]), self.words.weight)
        return scores.argmax(dim=-1, keepdim=True)


class Decoding:
    """The state of a generation: the tokens and their position are changed in place."""

    def __init__(self, device: torch.device, batch: int = BATCH) -> None:
        seeded()
        with device:
            self.model = Decoder(batch, device).bfloat16().eval()
        self.tokens = torch.randint(WORDS, (batch, 1), device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)

    def step(self) -> None:
        """Append one token to each sequence."""
        self.tokens.copy_(self.model(self.tokens, self.position))
        self.position += 1

    def warmed(self, steps: int = 3) -> None:
        """Run some steps on a side stream, as a capture needs."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(steps):
                self.step()
        torch.cuda.current_stream().wait_stream(side)

    def captured(self) -> torch.cuda.CUDAGraph:
        """Record a step as a graph."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self.step()
        return graph


def finish(device: torch.device) -> None:
    """Waits for the device, as a server does before it sends tokens."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def record_eager(run: Path, device: torch.device) -> None:
    """Decodes without a graph."""
    decoding = Decoding(device)
    with torch.inference_mode(), recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            decoding.step()
            finish(device)
            profiler.step()


def record_graph(run: Path, device: torch.device) -> None:
    """Records the capture and some replays, and then replays alone."""
    decoding = Decoding(device)
    with torch.inference_mode():
        decoding.warmed()
        with recorded(run, device, CAPTURE_PLAN) as profiler:
            decoding.step()
            profiler.step()
            graph = decoding.captured()
            profiler.step()
            for _ in range(CAPTURE_PLAN.steps - 2):
                graph.replay()
                finish(device)
                profiler.step()
        with recorded(run, device, REPLAY_PLAN) as profiler:
            for _ in range(PLAN.steps):
                graph.replay()
                finish(device)
                profiler.step()


def record_several(run: Path, device: torch.device) -> None:
    """Captures a graph for each batch size, then replays them in turn."""
    all_sizes = [Decoding(device, batch) for batch in BATCHES]
    with torch.inference_mode():
        for decoding in all_sizes:
            decoding.warmed()
        with recorded(run, device, SEVERAL_PLAN) as profiler:
            all_sizes[0].step()
            profiler.step()
            graphs = [decoding.captured() for decoding in all_sizes]
            profiler.step()
            for index in range(SEVERAL_PLAN.steps - 2):
                graphs[index % len(graphs)].replay()
                finish(device)
                profiler.step()


def main(where: Target) -> None:
    """Records the runs."""
    record_eager(where.run("eager"), where.device)
    if where.device.type == "cuda":
        record_graph(where.run("replayed"), where.device)
        record_several(where.run("several"), where.device)


if __name__ == "__main__":
    main(target("graph_replay", __doc__))
