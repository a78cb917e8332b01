"""Optimizer implementations: one call per parameter, foreach, or fused."""

from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import fields

MOST_OPTIMIZERS = 16


def optimizers(scene: Scene) -> list[dict[str, Any]] | None:
    """Return each optimizer's settings; None if there are none. Wrappers are omitted."""
    wrapped = {id(getattr(optimizer, "optimizer", None)) for optimizer in scene.optimizers}
    inner = [o for o in scene.optimizers if id(o) in wrapped]
    plain = [o for o in scene.optimizers if not _wraps_one_of(o, inner)]
    return [_settings(optimizer) for optimizer in plain[:MOST_OPTIMIZERS]] or None


def _wraps_one_of(optimizer: Any, inner: list[Any]) -> bool:
    return any(getattr(optimizer, "optimizer", None) is wrapped for wrapped in inner)


def _settings(optimizer: Any) -> dict[str, Any]:
    groups = optimizer.param_groups
    settings = fields(
        name=lambda: type(optimizer).__name__,
        parameter_group_count=lambda: len(groups),
    )
    for option in ("foreach", "fused", "capturable"):
        values = [group[option] for group in groups if option in group]
        if values and all(value is values[0] for value in values):
            settings[option] = values[0]  # None: torch chooses
    return settings
