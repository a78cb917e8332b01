"""Library of a Python function: the user's code, a library, or its caller's.

The profiler writes a function as `path(line): name`, and a C function as `<built-in method sort of
numpy.ndarray object at 0x7f01>`. A built-in function that names no library (`len`, `isinstance`)
belongs to its caller.
"""

import re

from stepscope.analyses.core.event_references import is_user_code

USER, TORCH, GARBAGE, OTHER = "user code", "torch", "garbage collection", "other library"
NAMED = ("numpy", "pandas", "PIL")
"""Libraries that prepare data for torch."""
COLLECTION = re.compile(r"^Python GC|^<built-in function collect>")
"""The first is of `record_python_gc_info` (torch 2.9 and later); the second is `gc.collect`."""
BUILT_IN = re.compile(r"^<built-in")
WORD = re.compile(r"[A-Za-z_]\w*")
IMAGING = frozenset({"ImagingCore", "ImagingDecoder", "ImagingEncoder"})
"""Objects of Pillow's C module."""
FRAME = re.compile(r"^(?P<file>[^\n]*?)\((?P<line>\d{1,9})\): (?P<function>.+)$", re.DOTALL)


def library_of(frame: str) -> str | None:
    """Return a function's library; None where it belongs to its caller."""
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
    """Return a file's package: the part after `site-packages`, else a known one, else the first."""
    path = frame.partition("(")[0].replace("\\", "/")
    for folder in ("site-packages/", "dist-packages/"):
        _, separator, behind = path.rpartition(folder)
        if separator:
            return behind.partition("/")[0]
    parts = [part for part in path.split("/") if part not in {"", "."}]
    named = [part for part in parts[:-1] if part in (TORCH, *NAMED)]
    return named[-1] if named else (parts[0] if parts else "")
