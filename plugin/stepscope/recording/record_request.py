"""The request of `stepscope record` to the script's processes, and the account that each returns.

The request travels in an environment variable, which all child processes inherit. Each process
returns a small JSON file. Standard library only: this module is imported before torch, possibly in
an environment other than the one in which stepscope is installed.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

VARIABLE = "STEPSCOPE_RECORD"
"""The environment variable that holds the request as JSON."""
ACCOUNTS = "STEPSCOPE_RECORD_ACCOUNTS"
"""The environment variable that names the folder for accounts."""
StepsFrom = Literal["auto", "optimizer", "dataloader", "none"]


@dataclass(frozen=True, kw_only=True)
class RecordRequest:
    """Steps of an unchanged script to record, and the folder for the traces."""

    log_dir: str
    """Absolute, because the script may change its working folder."""
    skip: int | None
    """Steps before the first warm-up, not counting the script's start up to the first step's end.

    None: a default by the length of an epoch (`Cycles`).
    """
    wait: int
    """Steps between two cycles."""
    warmup: int
    """Warm-up steps of a cycle: the profiler runs, but they are not recorded."""
    active: int
    """Recorded steps of a cycle; at least 1."""
    repeat: int
    """Number of cycles; at least 1."""
    seconds: float
    """Recording time of a script without steps."""
    steps_from: StepsFrom = "auto"
    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    samples: bool = True
    """Whether to sample the main thread in steps that are not recorded."""
    values: bool = True
    """Whether to read the values of tensors in two such steps."""
    is_stopping: bool = False
    """Whether the script ends with its last cycle."""

    def as_text(self) -> str:
        """Return the request as text for the environment variable."""
        return json.dumps(asdict(self))


def parse_request(text: str) -> RecordRequest:
    """Parse a request from the environment variable's text.

    Raises:
        ValueError, TypeError: The text is not a request, or is of another version.
    """
    return RecordRequest(**json.loads(text))


@dataclass(kw_only=True)
class RecordedTrace:
    """A written file: the steps of a cycle, or a time without steps."""

    path: str
    first_step: int
    """0 for a script without steps."""
    step_count: int
    """Number of complete steps."""
    is_whole: bool
    """Whether the cycle was completed."""
    since_s: float = 0.0
    """Without steps: time from the import of torch, in seconds; 0: the start was recorded."""


@dataclass(kw_only=True)
class Account:
    """The result in one process; rewritten whenever it changes."""

    process: int
    parent: int = 0
    """Id of the parent process; 0 if unknown."""
    program: str = ""
    """`sys.argv[0]`, or the module that was run."""
    rank: int | None = None
    """The rank in a distributed job; None outside one."""
    has_torch: bool = False
    steps_from: str = ""
    """Source of the steps as text: `optimizer SGD`."""
    step_count: int = 0
    """Number of complete steps; not counted after recording has ended."""
    is_complete: bool = False
    """Whether all cycles were recorded."""
    written: list[RecordedTrace] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Deviations from the request, as sentences."""

    def save(self, folder: str) -> None:
        """Write the account; ignore a missing folder (the command ended before this process)."""
        path = Path(folder) / f"{self.process}.json"
        half = path.with_suffix(".half")
        try:
            half.write_text(json.dumps(asdict(self)), encoding="utf-8")
            half.replace(path)
        except OSError:
            return


def accounts_in(folder: str) -> list[Account]:
    """Return the account of each process, except those killed while writing it."""
    return sorted(
        _read(folder),
        key=lambda account: (account.rank is None, account.rank or 0, account.process),
    )


def _read(folder: str) -> Iterator[Account]:
    for path in Path(folder).glob("*.json"):
        with suppress(OSError, ValueError, TypeError):
            fields = json.loads(path.read_text(encoding="utf-8"))
            fields["written"] = [RecordedTrace(**written) for written in fields.get("written", [])]
            yield Account(**fields)
