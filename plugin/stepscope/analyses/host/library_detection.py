"""Whose code a Python function is: the user's, a library's, or its caller's.

The profiler writes a function as `path(line): name`, and what is written in C as
`<built-in method sort of numpy.ndarray object at 0x7f01>`. A built-in function that names no
library (`len`, `isinstance`) is counted as its caller's.
"""

import re

from stepscope.analyses.core.event_references import is_user_code

USER, TORCH, GARBAGE, OTHER = "user code", "torch", "garbage collection", "other library"
NAMED = ("numpy", "pandas", "PIL")
"""Libraries that prepare what torch computes with."""
COLLECTION = re.compile(r"^Python GC|^<built-in function collect>")
"""`record_python_gc_info` records the first (torch 2.9 and later); the second is `gc.collect`."""
BUILT_IN = re.compile(r"^<built-in")
WORD = re.compile(r"[A-Za-z_]\w*")
IMAGING = frozenset({"ImagingCore", "ImagingDecoder", "ImagingEncoder"})
"""Objects of Pillow's own module in C."""
FRAME = re.compile(r"^(?P<file>[^\n]*?)\((?P<line>\d{1,9})\): (?P<function>.+)$", re.DOTALL)


def library_of(frame: str) -> str | None:
    """Return whose code a function is; None where it is its caller's."""
    if BUILT_IN.match(frame):
        return GARBAGE if COLLECTION.match(frame) else _named_in(frame)
    if COLLECTION.match(frame):
        return GARBAGE
    package = TORCH if frame.startswith("nn.Module: ") else _package(frame)
    if package in (TORCH, *NAMED):
        return package
    return USER if is_user_code(frame) else OTHER


def _named_in(frame: str) -> str | None:
    words = set(WORD.findall(frame))
    if words & IMAGING:
        return "PIL"
    return next((library for library in (TORCH, *NAMED) if library in words), None)


def _package(frame: str) -> str:
    """Return a file's package: what follows `site-packages`, else a known one, else the first."""
    path = frame.partition("(")[0].replace("\\", "/")
    for folder in ("site-packages/", "dist-packages/"):
        _, separator, behind = path.rpartition(folder)
        if separator:
            return behind.partition("/")[0]
    parts = [part for part in path.split("/") if part not in {"", "."}]
    named = [part for part in parts[:-1] if part in (TORCH, *NAMED)]
    return named[-1] if named else (parts[0] if parts else "")
