"""DistributedDataParallel over gloo: two processes on one CPU host."""

import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FAULTS = {
    "uneven": "sentences sorted by length and split in halves, so that rank 1 has all long ones",
    "unused": "find_unused_parameters of a model that uses all of them",
    "threads": "four threads in each rank, of a machine with fewer cores",
}

WORLD_SIZE = 2
GLOBAL_BATCH = 8
VOCAB = 3000
WARMUP, STEPS = 6, 60


def setup(rank, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD_SIZE)


class PairClassifier(nn.Module):
    """Deep and narrow: residual layers over packed tokens, then their mean by sentence."""

    def __init__(self, dim=64, depth=16):
        super().__init__()
        self.token = nn.Embedding(VOCAB, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.out = nn.Linear(dim, 3)

    def forward(self, ids, lengths):
        x = self.token(ids)
        for norm, layer in zip(self.norms, self.layers):
            x = x + torch.relu(layer(norm(x)))  # fault: uneven # fault: threads
        sentences = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        total = x.new_zeros(len(lengths), x.shape[1]).index_add(0, sentences, x)
        return self.out(total / lengths[:, None])


def make_batch(step):
    """The same global batch on all ranks: the length of each sentence, its ids, and labels."""
    generator = torch.Generator().manual_seed(step)
    lengths = torch.randint(16, 120, (GLOBAL_BATCH,), generator=generator).sort().values
    sentences = torch.randint(1, VOCAB, (GLOBAL_BATCH, 120), generator=generator)
    return sentences, lengths, torch.randint(0, 3, (GLOBAL_BATCH,), generator=generator)


def shard(batch, rank, contiguous):
    sentences, lengths, labels = batch
    half = GLOBAL_BATCH // WORLD_SIZE
    rows = slice(rank * half, (rank + 1) * half) if contiguous else slice(rank, None, WORLD_SIZE)
    packed = [ids[:length] for ids, length in zip(sentences[rows], lengths[rows])]
    return torch.cat(packed), lengths[rows], labels[rows]


def train(rank, faults, port):
    torch.set_num_threads(4 if "threads" in faults else max(1, os.cpu_count() // WORLD_SIZE))
    setup(rank, port)
    torch.manual_seed(0)
    model = DDP(PairClassifier(), find_unused_parameters="unused" in faults)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_fn = nn.CrossEntropyLoss()

    batches = [shard(make_batch(step), rank, "uneven" in faults) for step in range(WARMUP + STEPS)]
    for step, (ids, lengths, labels) in enumerate(batches):
        if step == WARMUP:
            dist.barrier()
            start = time.perf_counter()
        optimizer.zero_grad()
        logits = model(ids, lengths)  # fault: uneven # fault: unused # fault: threads
        loss = loss_fn(logits, labels)
        loss.backward()  # fault: uneven # fault: unused # fault: threads
        optimizer.step()
    dist.barrier()
    if rank == 0:
        seconds = time.perf_counter() - start
        print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * GLOBAL_BATCH}", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []])
    on = set(parser.parse_args().faults)
    mp.spawn(train, args=(on, free_port()), nprocs=WORLD_SIZE, join=True)
