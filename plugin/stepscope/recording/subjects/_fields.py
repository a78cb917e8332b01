"""Fields of a subject, each read separately."""

import logging
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("stepscope.recording")


def fields(**readers: Callable[[], Any]) -> dict[str, Any]:
    """Return the value of each reader by name, without those that fail or return None."""
    values = {name: _value(name, read) for name, read in readers.items()}
    return {name: value for name, value in values.items() if value is not None}


def _value(name: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception:  # the user's objects may raise anything
        logger.debug("%s is unknown", name, exc_info=True)
        return None


def dtype_name(dtype: Any) -> str:
    """Return `float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def whole(value: Any) -> int | None:
    """Return an int, or None for other values, bool included."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(value: Any) -> bool | None:
    """Return True or False, or None for anything else."""
    return value if isinstance(value, bool) else None
