"""Parts of Chrome trace events as JSON text."""

import json


def microseconds(time_ns: int) -> str:
    """Return a time in ns as microseconds, exactly."""
    sign = "-" if time_ns < 0 else ""
    return f"{sign}{abs(time_ns) // 1000}.{abs(time_ns) % 1000:03d}"


def metadata(
    name: str, process: int, values: dict[str, str | int], track: int = 0, *, category: str = ""
) -> str:
    """Return an event that names or sorts a process or a track."""
    event = {"ph": "M", "name": name, "pid": process, "tid": track, "args": values}
    return json.dumps({**event, "cat": category} if category else event)
