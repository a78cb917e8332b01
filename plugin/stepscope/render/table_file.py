"""What files of tables have in common, whatever their form."""

import shutil
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from stepscope.model.frames import Schema

SCHEMA_VERSION = 1
"""Of the files' form; columns are added within a number, never renamed."""


class Withheld(msgspec.Struct, frozen=True):
    """A recording that cannot have a table, and the line of code that records what it lacks."""

    run: str
    worker: str
    span: str
    reason: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class About:
    """What a file says of its table beside the rows."""

    table: str
    title: str
    meaning: str
    schema: Schema
    version: str
    withheld: tuple[Withheld, ...] = ()


def copied(part: BinaryIO, sink: BinaryIO) -> None:
    """Copy all that is in a file."""
    shutil.copyfileobj(part, sink, 1 << 20)
