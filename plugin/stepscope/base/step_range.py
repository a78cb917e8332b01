"""A range of steps by their numbers, as users write it: `5` or `3-5`."""

import re
from dataclasses import dataclass

from stepscope.base.errors import UsageError

WRITTEN = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


@dataclass(frozen=True)
class StepRange:
    """Steps by their `ProfilerStep` numbers, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        if self.first == self.last:
            return f"step {self.first}"
        return f"steps {self.first}-{self.last}"


def parse_steps(text: str, name: str = "steps") -> StepRange:
    """Return the range that a text names; `name` is the parameter's, for the error.

    Raises:
        UsageError: The text is neither a number nor a range.
    """
    match = WRITTEN.fullmatch(text.strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last:
        msg = f"{name} takes a number, or two as in 3-5, not {text!r}"
        raise UsageError(msg)
    return StepRange(first, last)
