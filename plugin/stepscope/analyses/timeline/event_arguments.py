"""What the trace says of one event beside its time: its arguments."""

import numpy as np

from stepscope.model.trace import Trace

Value = str | int | float


def arguments_of(trace: Trace, event: int) -> list[tuple[str, Value]]:
    """Return an event's arguments in the order in which the file has the first of each."""
    found = ((key, argument_of(trace, event, key)) for key in trace.columns.arguments)
    return [(key, value) for key, value in found if value is not None]


def argument_of(trace: Trace, event: int, key: str) -> Value | None:
    """Return one of an event's arguments; None where it has no such."""
    column = trace.columns.arguments.get(key)
    if column is None:
        return None
    place = int(column.rows.searchsorted(np.int32(event)))  # of their type, or all are converted
    if place == len(column.rows) or int(column.rows[place]) != event:
        return None
    value: Value = column.values[place].item()
    return value if column.texts is None else column.texts[int(value)]
