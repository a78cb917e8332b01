"""The settings of a training process: `collect`, which the file of each span gets a copy of.

A subject is a file in `subjects/` with one function from a `Scene`. Each is asked on its own: one
that fails costs its own fields, and is named under `failed`. Unknown values are left out, never
guessed; null means that the setting is left to torch.
"""

import json
import logging
import math
import warnings
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from stepscope._version import __version__
from stepscope.recording.live_objects import Given, Scene, live_objects
from stepscope.recording.subjects import (
    compilation,
    dataloader,
    distributed,
    environment,
    hardware,
    model,
    optimizer,
    precision,
    profiler,
)

SCHEMA = 1
KEY = "stepscope_recorder"
"""The top-level key in the trace; `stepscope` is the program's own metadata."""
LONGEST_TEXT = 300
"""Longer text is cut: a setting is a word or a number."""

Collector = Callable[[Scene], Any]

COLLECTORS: Mapping[str, Collector] = MappingProxyType(
    {
        "torch": hardware.torch_build,
        "host": hardware.host,
        "devices": hardware.devices,
        "dataloaders": dataloader.dataloaders,
        "batch": dataloader.batch,
        "precision": precision.precision,
        "cudnn": precision.cudnn,
        "allocator": environment.allocator,
        "environment": environment.environment,
        "compile": compilation.compiled,
        "distributed": distributed.distributed,
        "optimizers": optimizer.optimizers,
        "model": model.model,
        "profiler": profiler.profiler,
    }
)
"""Each subject, by the name under which it is written."""

logger = logging.getLogger("stepscope.recording")


def collect(
    profiler: Any = None,
    given: Given | None = None,
    *,
    leave_out: Collection[str] = (),
    is_searched: bool = True,
) -> dict[str, Any]:
    """Return the object that a trace holds under `"stepscope_recorder"`; it never raises.

    Args:
        profiler: The `torch.profiler.profile` that records, for its options.
        given: Objects and settings from the caller; they override live objects.
        leave_out: Subjects that are not collected, of `COLLECTORS`.
        is_searched: Whether DataLoaders, optimizers and modules that are not given are looked for.
    """
    given = given or Given()
    failed: list[str] = []
    scene = _scene(given, profiler, is_searched=is_searched)
    settings: dict[str, Any] = {}
    for subject, collector in COLLECTORS.items():
        if subject not in leave_out:
            values = _collected_values(subject, collector, scene, failed)
            if (values := _with_given(values, given.settings.get(subject))) is not None:
                settings[subject] = values
    others = set(given.settings) - set(COLLECTORS) - set(leave_out)
    settings |= {subject: dict(given.settings[subject]) for subject in sorted(others)}
    result = {"schema": SCHEMA, "recorder": __version__, "settings": settings}
    return {**result, "failed": failed} if failed else result


def as_json(collected: Mapping[str, Any]) -> str:
    """Return settings as JSON that every reader takes: finite numbers, no other types."""
    return json.dumps(_plain(collected), allow_nan=False)


def _scene(given: Given, profiler: Any, *, is_searched: bool) -> Scene:
    try:
        return live_objects(given, profiler, is_searched=is_searched)
    except Exception:  # of the user's process anything may be met
        logger.debug("what is alive could not be looked through", exc_info=True)
        return Scene(given=given, profiler=profiler)


def _collected_values(subject: str, collector: Collector, scene: Scene, failed: list[str]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings that torch has since renamed
            return collector(scene)
    except Exception:  # a collector that fails costs its own subject
        logger.debug("%s could not be collected", subject, exc_info=True)
        failed.append(subject)
        return None


def _with_given(values: Any, given: Mapping[str, Any] | None) -> Any:
    if not given:
        return values or (None if isinstance(values, Mapping) else values)
    return {**(values if isinstance(values, Mapping) else {}), **given}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; other types become text."""
    if isinstance(value, Mapping):
        return {str(key)[:LONGEST_TEXT]: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else str(value)[:LONGEST_TEXT]
