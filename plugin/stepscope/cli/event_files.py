"""TensorBoard's event files, written as a whole: the same numbers give the same bytes.

A file that is there already stays as it is where nothing is new, and is appended to where only
later steps are; so nothing is written twice, and a TensorBoard that is open sees what is new.
"""

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

NAME = "events.out.tfevents.0000000000.stepscope"
"""`tfevents` is what TensorBoard looks for; no clock and no process number, so that it is found."""
VERSION = "brain.Event:2"


@dataclass(frozen=True, kw_only=True)
class Scalars:
    """The values of one step."""

    step: int
    wall_time: float
    """When, in seconds of Unix time."""
    values: dict[str, float]
    """By tag."""


def content(scalars: Iterable[Scalars]) -> bytes:
    """Return an event file of these steps."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    written = io.BytesIO()
    writer = RecordWriter(written)
    writer.write(Event(wall_time=0.0, file_version=VERSION).SerializeToString(deterministic=True))
    for each in scalars:
        values = [Summary.Value(tag=tag, simple_value=of) for tag, of in each.values.items()]
        event = Event(wall_time=each.wall_time, step=each.step, summary=Summary(value=values))
        writer.write(event.SerializeToString(deterministic=True))
    return written.getvalue()


def write(folder: Path, wanted: bytes) -> bool:
    """Make a folder's event file of ours hold this; return whether anything had to be written."""
    path = folder / NAME
    there = path.read_bytes() if path.exists() else b""
    if there == wanted:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    if there and wanted.startswith(there):
        with path.open("ab") as stream:
            stream.write(wanted[len(there) :])
        return True
    unfinished = folder / f".{os.urandom(4).hex()}.part"
    try:
        unfinished.write_bytes(wanted)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return True
