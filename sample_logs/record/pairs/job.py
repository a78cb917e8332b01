"""Faults and steps of a job script."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

import torch

ItemT = TypeVar("ItemT")


class Fault:
    """A fault that a job can have, and the rules that should name it."""

    def __init__(self, *rules: str, kind: str = "") -> None:
        if not rules and not kind:
            message = "Fault: name its rules, or its kind"
            raise ValueError(message)
        self.rules = rules
        """Ids; none where no rule is about it."""
        self.kind = kind or rules[0]
        """A noun phrase for the fault; by default the id of the first rule."""


class Steps(Protocol):
    """The steps of a job: `train` runs while some remain, and ends each with `step()`."""

    @property
    def remain(self) -> bool:
        """Whether another step follows."""

    def step(self) -> None:
        """End the step; wait while the other side of the pair runs."""


def endless(batches: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yields the batches of one epoch after the other."""
    while True:
        yield from batches


def one_thread(_worker: int) -> None:
    """Keeps a DataLoader's worker to one core (`worker_init_fn`)."""
    torch.set_num_threads(1)
