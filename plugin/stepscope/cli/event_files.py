"""TensorBoard event files with deterministic content: the same numbers give the same bytes.

An existing file is left alone if nothing is new, and is appended to if only later steps are new, so
that a running TensorBoard sees them.
"""

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

NAME = "events.out.tfevents.0000000000.stepscope"
"""TensorBoard looks for `tfevents`; without time and process number the name is always the same."""
VERSION = "brain.Event:2"


@dataclass(frozen=True, kw_only=True)
class Scalars:
    """The values of one step."""

    step: int
    wall_time: float
    """Unix time in seconds."""
    values: dict[str, float]
    """By tag."""


def encode(scalars: Iterable[Scalars]) -> bytes:
    """Return an event file of these steps."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    written = io.BytesIO()
    writer = RecordWriter(written)
    writer.write(Event(wall_time=0.0, file_version=VERSION).SerializeToString(deterministic=True))
    for step in scalars:
        values = [Summary.Value(tag=tag, simple_value=v) for tag, v in step.values.items()]
        event = Event(wall_time=step.wall_time, step=step.step, summary=Summary(value=values))
        writer.write(event.SerializeToString(deterministic=True))
    return written.getvalue()


def write(folder: Path, content: bytes) -> bool:
    """Update a folder's event file to this content; return whether anything was written."""
    path = folder / NAME
    existing = path.read_bytes() if path.exists() else b""
    if existing == content:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    if existing and content.startswith(existing):
        with path.open("ab") as stream:
            stream.write(content[len(existing) :])
        return True
    unfinished = folder / f".{os.urandom(4).hex()}.part"
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return True
