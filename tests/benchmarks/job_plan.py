"""A synthetic job: its ranks, hosts and process groups, and its faults."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

RANKS_A_HOST = 8
LARGE_JOB = 256
FIRST_PID = 4200
RECORDED_NS = 1_767_247_200_000_000_000
DESCRIPTIONS = {
    "world": "default_pg",
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "dp": "DATA_PARALLEL_GROUP",
    "mp": "MODEL_PARALLEL_GROUP",
    "cp": "CONTEXT_PARALLEL_GROUP",
    "ep": "EXPERT_MODEL_PARALLEL_GROUP",
    "tp_dp": "TENSOR_AND_DATA_PARALLEL_GROUP",
}
"""The eight kinds of groups of each rank, with Megatron's names."""
WAYS = {False: (4, 2), True: (8, 4)}
"""Tensor- and pipeline-parallel ways of a small job and of a large one."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job with a number of ranks: a multiple of 16, and of 64 from 256 on."""

    rank_count: int
    step_count: int = 5

    def __post_init__(self) -> None:
        """Check that the mesh divides the ranks.

        Raises:
            ValueError: the ranks do not fill the mesh.
        """
        unit = 64 if self.rank_count >= LARGE_JOB else 16
        if self.rank_count < unit or self.rank_count % unit:
            msg = f"{self.rank_count}: a job has a multiple of 16 ranks, of 64 from 256 on"
            raise ValueError(msg)

    @property
    def straggler(self) -> int:
        """Rank with a slow DataLoader."""
        return self.rank_count * 5 // 8 + 3

    @property
    def missing(self) -> tuple[int, int]:
        """Ranks without a file."""
        return self.rank_count // 4 + 1, self.rank_count // 2 + 6

    @property
    def damaged(self) -> int:
        """Rank whose file is truncated."""
        return self.rank_count * 3 // 4 + 3

    @cached_property
    def groups(self) -> Mapping[str, NDArray[np.int64]]:
        """Group of each rank by kind; groups of one kind are numbered from 0."""
        tensor, pipeline = WAYS[self.rank_count >= LARGE_JOB]
        data = self.rank_count // (tensor * pipeline)
        rank = np.arange(self.rank_count)
        at_tensor, at_data, at_stage = (
            rank % tensor,
            rank // tensor % data,
            rank // (tensor * data),
        )
        experts = max(ways for ways in range(1, 9) if data % ways == 0)
        keys = {
            "world": 0 * rank,
            "tp": at_data + data * at_stage,
            "pp": at_tensor + tensor * at_data,
            "dp": at_tensor + tensor * at_stage,
            "mp": at_data,
            "cp": rank // (2 * tensor) * tensor + at_tensor,
            "ep": (at_stage * (data // experts) + at_data // experts) * tensor + at_tensor,
            "tp_dp": at_stage,
        }
        return {kind: np.unique(key, return_inverse=True)[1] for kind, key in keys.items()}

    def members(self, kind: str, rank: int) -> list[int]:
        """Return the ranks of the group of a kind that a rank is in."""
        group_of = self.groups[kind]
        return [int(member) for member in np.flatnonzero(group_of == group_of[rank])]

    def group_name(self, kind: str, rank: int) -> str:
        """Return torch's name of that group: all groups of a job are numbered."""
        before = 0
        for name, group_of in self.groups.items():
            if name == kind:
                return str(before + int(group_of[rank]))
            before += int(group_of.max()) + 1
        raise KeyError(kind)

    def host(self, rank: int) -> str:
        """Return the name of the machine that a rank runs on."""
        return f"node{rank // RANKS_A_HOST:04d}"

    def process_id(self, rank: int) -> int:
        """Return the number of a rank's process on its machine."""
        return FIRST_PID + 10 * (rank % RANKS_A_HOST)

    def worker(self, rank: int) -> str:
        """Return torch's default name of a rank's process."""
        return f"{self.host(rank)}_{self.process_id(rank)}"

    def file_name(self, rank: int) -> str:
        """Return the name of a rank's file."""
        return f"{self.worker(rank)}.{RECORDED_NS + 137 * rank}.pt.trace.json.gz"
