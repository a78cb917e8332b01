"""The request of `stepscope record` to the script's processes, and the account that each returns.

The request travels in an environment variable, which all child processes inherit. Each process
returns one small JSON file. Standard library only: this is read before torch, and
perhaps in another environment than the one that stepscope is installed in.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

VARIABLE = "STEPSCOPE_RECORD"
"""The environment variable that holds the order, as JSON."""
ACCOUNTS = "STEPSCOPE_RECORD_ACCOUNTS"
"""The environment variable that names the folder for accounts."""
StepsFrom = Literal["auto", "optimizer", "dataloader", "none"]
STEPS_FROM: tuple[StepsFrom, ...] = ("auto", "optimizer", "dataloader", "none")


@dataclass(frozen=True, kw_only=True)
class Order:
    """Steps to record of an unchanged script, and the folder for the traces."""

    log_dir: str
    """Absolute: the script may go to another folder."""
    skip: int | None
    """Steps before the first warm-up; the script's start, up to the first step's end, is none.

    None: as many as are worth it (`script_recorder.py`)."""
    wait: int
    """Steps between two cycles."""
    warmup: int
    """Steps of a cycle that the profiler is on in, and keeps nothing of."""
    active: int
    """Steps of a cycle that are kept; at least 1."""
    repeat: int
    """How many cycles; at least 1."""
    seconds: float
    """How long to record a script that has no steps."""
    steps_from: StepsFrom = "auto"
    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    is_stopping: bool = False
    """Whether the script ends with its last cycle."""

    def as_text(self) -> str:
        """Return it for the environment."""
        return json.dumps(asdict(self))


def order_in(text: str) -> Order:
    """Return the order in an environment variable's text.

    Raises:
        ValueError, TypeError: it is none, or one of another version.
    """
    return Order(**json.loads(text))


@dataclass(kw_only=True)
class Written:
    """One file that was written: a cycle's steps, or a time without steps."""

    path: str
    first_step: int
    """0 where the script has no steps."""
    step_count: int
    """Complete ones."""
    is_whole: bool
    """Whether the cycle came to its end."""


@dataclass(kw_only=True)
class Account:
    """The result in one process; rewritten whenever it changes."""

    process: int
    parent: int = 0
    """The process that started it; 0: not known."""
    program: str = ""
    """`sys.argv[0]`, or the module that was run."""
    rank: int | None = None
    """Among the ranks of a distributed job; None: it is none."""
    has_torch: bool = False
    steps_from: str = ""
    """Source of the steps, in words: `optimizer SGD`."""
    step_count: int = 0
    """How many whole steps were seen; once recording is over they are counted no more."""
    is_complete: bool = False
    """Whether all cycles were recorded."""
    written: list[Written] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Deviations from the request: sentences."""

    def save(self, folder: str) -> None:
        """Write it; a folder that is gone costs nothing (the command ended before this process)."""
        path = Path(folder) / f"{self.process}.json"
        half = path.with_suffix(".half")
        try:
            half.write_text(json.dumps(asdict(self)), encoding="utf-8")
            half.replace(path)
        except OSError:
            return


def accounts_in(folder: str) -> list[Account]:
    """Return the account of each process, without those that were killed while writing."""
    return sorted(_read(folder), key=lambda one: (one.rank is None, one.rank or 0, one.process))


def _read(folder: str) -> Iterator[Account]:
    for path in Path(folder).glob("*.json"):
        with suppress(OSError, ValueError, TypeError):
            fields = json.loads(path.read_text(encoding="utf-8"))
            fields["written"] = [Written(**written) for written in fields.get("written", [])]
            yield Account(**fields)
