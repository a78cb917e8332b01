"""DistributedDataParallel with one gradient message per layer, then with its default buckets.

`small` sets `bucket_cap_mb` so low that every layer is a bucket, and every bucket a message for
which the ranks wait for each other; `default` leaves it at 25 MiB.
"""

from functools import partial

from narrow_network import WIDTH, train_a_rank
from recording import Plan, Target, target
from two_ranks import insist_on_two, on_two_ranks

DEPTH = 16
DEFAULT_MIB = 25.0
LAYER_MIB = WIDTH * WIDTH * 4 / 2**20
PLAN = Plan(wait=8, active=6)


def main(where: Target) -> None:
    """Records the fault and the fix."""
    insist_on_two(where.device)
    for run, mib in (("small", LAYER_MIB), ("default", DEFAULT_MIB)):
        rank = partial(train_a_rank, run=where.run(run), plan=PLAN, depth=DEPTH, bucket_cap_mb=mib)
        on_two_ranks(rank, where.device)


if __name__ == "__main__":
    main(target("buckets", __doc__))
