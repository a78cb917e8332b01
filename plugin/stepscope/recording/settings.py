"""The settings of a training process: `collect`, whose result is added to the file of each span.

A subject is a module in `subjects/` with one function of a `Scene`. Each is called independently: a
failing one loses only its own fields and is listed under `failed`. Unknown values are omitted,
never guessed; null means that torch chooses.
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
"""Function of each subject, by the subject's name in the file."""

logger = logging.getLogger("stepscope.recording")


def collect(
    profiler: Any = None,
    given: Given | None = None,
    *,
    leave_out: Collection[str] = (),
    is_searched: bool = True,
) -> dict[str, Any]:
    """Return the object stored in a trace under `"stepscope_recorder"`; never raises.

    Args:
        profiler: The recording `torch.profiler.profile`, for its options.
        given: Objects and settings from the caller; they override live objects.
        leave_out: Names of `COLLECTORS` to omit.
        is_searched: Whether to search live objects for DataLoaders, optimizers and modules that are
            not passed.
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
    """Return settings as JSON that every reader accepts: finite numbers, no other types."""
    return json.dumps(_plain(collected), allow_nan=False)


def _scene(given: Given, profiler: Any, *, is_searched: bool) -> Scene:
    try:
        return live_objects(given, profiler, is_searched=is_searched)
    except Exception:  # objects of the user's process may raise anything
        logger.debug("live objects could not be searched", exc_info=True)
        return Scene(given=given, profiler=profiler)


def _collected_values(subject: str, collector: Collector, scene: Scene, failed: list[str]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about settings that torch has since renamed
            return collector(scene)
    except Exception:  # a failing collector loses only its own subject
        logger.debug("%s could not be collected", subject, exc_info=True)
        failed.append(subject)
        return None


def _with_given(values: Any, given: Mapping[str, Any] | None) -> Any:
    if not given:
        return values or (None if isinstance(values, Mapping) else values)
    return {**(values if isinstance(values, Mapping) else {}), **given}


def _plain(value: Any) -> Any:
    """Return a value as a JSON type; other types become text."""
    if isinstance(value, Mapping):
        return {str(key)[:LONGEST_TEXT]: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else str(value)[:LONGEST_TEXT]
