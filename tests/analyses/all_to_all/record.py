"""Records all-to-all exchanges of four ranks with gloo: `python record.py`, in this folder.

Each rank exchanges rows of 16 floats twice, with `sent_rows` of them, then four floats with each
rank in equal parts.
"""

# mypy: allow-untyped-calls

import gzip
import os
from pathlib import Path

RANKS = 4
COLUMNS = 16
TIMES = 2
EQUAL = 4


def sent_rows(sender: int, receiver: int) -> int:
    """The rows that a rank sends to another in an exchange."""
    return 8 * (1 + (3 * sender + 5 * receiver) % 7)


def run(rank: int) -> None:
    """Exchanges and records as one rank."""
    import torch
    from torch import distributed

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29611")
    distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    sent = [sent_rows(rank, other) for other in range(RANKS)]
    received = [sent_rows(other, rank) for other in range(RANKS)]
    rows, result = torch.randn(sum(sent), COLUMNS), torch.empty(sum(received), COLUMNS)
    with torch.profiler.profile(record_shapes=True) as profiler:
        for _ in range(TIMES):
            distributed.all_to_all_single(result, rows, received, sent)
        distributed.all_to_all_single(torch.empty(EQUAL * RANKS), torch.ones(EQUAL * RANKS))
    path = Path(f"rank{rank}.pt.trace.json")
    profiler.export_chrome_trace(str(path))
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    distributed.destroy_process_group()


if __name__ == "__main__":
    from torch.multiprocessing.spawn import spawn

    spawn(run, nprocs=RANKS)
