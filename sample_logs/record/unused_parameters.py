"""DistributedDataParallel that searches for unused parameters although all are used; then without.

After every forward pass it searches the whole graph, and after every backward pass the ranks agree
on the result with an additional all-reduce. The network has many parameters and little to compute.
"""

from functools import partial

from narrow_network import train_a_rank
from recording import Plan, Target, target
from two_ranks import insist_on_two, on_two_ranks

DEPTH = 6
PLAN = Plan(wait=20, active=20)


def main(where: Target) -> None:
    """Records the fault and the fix."""
    insist_on_two(where.device)
    for run, searches in (("searching", True), ("not_searching", False)):
        rank = partial(
            train_a_rank,
            run=where.run(run),
            plan=PLAN,
            depth=DEPTH,
            find_unused_parameters=searches,
        )
        on_two_ranks(rank, where.device)


if __name__ == "__main__":
    main(target("unused_parameters", __doc__))
