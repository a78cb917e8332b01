"""Ask each field on its own."""

import logging
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("stepscope.recording")


def known(**fields: Callable[[], Any]) -> dict[str, Any]:
    """Return what each function says, by name; what fails or says None is left out."""
    said = {name: _asked(name, ask) for name, ask in fields.items()}
    return {name: value for name, value in said.items() if value is not None}


def _asked(name: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception:  # objects of the user's: anything may be raised
        logger.debug("%s is not known", name, exc_info=True)
        return None


def dtype_name(dtype: Any) -> str:
    """Return `float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def whole(value: Any) -> int | None:
    """Return a whole number, or None for what is none; True and False are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(value: Any) -> bool | None:
    """Return True or False, or None for anything else."""
    return value if isinstance(value, bool) else None
