"""Stacks of a memory snapshot as text, in the format of torch's own flame graphs."""

from collections.abc import Mapping
from typing import Any

from stepscope.base.errors import UnreadableError
from stepscope.ingest.memory_files import RECORD_LESS

MOST_STACK_CHARACTERS = 2**29
"""Limit of all stacks as text."""
MOST_FRAMES = 64
"""Limit of frames per stack, from the innermost."""
MOST_FRAME_CHARACTERS = 240
UNKNOWN = -1
OMITTED_FUNCTIONS = (
    "unwind::unwind",
    "CapturedTraceback::gather",
    "gather_with_cpp",
    "_start",
    "__libc_start_main",
    "PyEval_",
    "PyObject_",
    "PyFunction_",
)
OMITTED_FILES = (
    "core/boxing",
    "/Register",
    "/Redispatch",
    "pythonrun.c",
    "Modules/main.c",
    "Objects/call.c",
    "Objects/methodobject.c",
    "pycore_ceval.h",
    "ceval.c",
    "cpython/abstract.h",
)
"""Frames that torch's own flame graphs omit (`torch/cuda/_memory_viz.py`)."""


class Stacks:
    """Distinct stacks by their frames, each converted to text once."""

    def __init__(self, path: str) -> None:
        self.texts: list[str] = []
        self._path = path
        self._number_of_text: dict[str, int] = {}
        self._of_frames: dict[tuple[int, ...], int] = {}
        """By the frames' identities: torch shares the frames of its stacks."""
        self._of_frame: dict[int, str] = {}
        self._left = MOST_STACK_CHARACTERS

    def number(self, holder: Mapping[str, Any]) -> int:
        """Return the index of an item's stack, or -1."""
        frames = holder.get("frames")
        if not isinstance(frames, list) or not frames:
            return UNKNOWN
        key = tuple(map(id, frames[: 4 * MOST_FRAMES]))
        number = self._of_frames.get(key)
        if number is None:
            number = self._of_frames[key] = self._made(frames[: 4 * MOST_FRAMES])
        return number

    def _made(self, frames: list[Any]) -> int:
        """Return the index of a stack with new frames."""
        shown = [text for frame in frames if (text := self._frame(frame))]
        text = ";".join(reversed(shown[:MOST_FRAMES]))
        number = self._number_of_text.get(text, UNKNOWN)
        if text and number == UNKNOWN:
            self._left -= len(text)
            if self._left < 0:
                message = "Its stacks are too long to read."
                raise UnreadableError(self._path, message, RECORD_LESS)
            number = self._number_of_text[text] = len(self.texts)
            self.texts.append(text)
        return number

    def _frame(self, frame: object) -> str:
        text = self._of_frame.get(id(frame))
        if text is None:
            text = _frame_text(frame) if isinstance(frame, dict) else ""
            self._of_frame[id(frame)] = text
        return text


def _frame_text(frame: Mapping[str, Any]) -> str:
    """Return `file:line:function`, as in torch's flame graphs; empty for internal frames."""
    name, file = (_text(frame.get(key)) for key in ("name", "filename"))
    line = frame.get("line")
    if any(part in name for part in OMITTED_FUNCTIONS) or any(p in file for p in OMITTED_FILES):
        return ""
    text = f"{file.split('/')[-1]}:{line if type(line) is int else 0}:{name}"
    return text[:MOST_FRAME_CHARACTERS].replace(";", ",")


def _text(value: object) -> str:
    """Return the end of a text; empty for other values, which might be endless."""
    return value[-MOST_FRAME_CHARACTERS:] if isinstance(value, str) else ""
