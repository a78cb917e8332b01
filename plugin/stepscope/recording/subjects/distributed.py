"""Settings of distributed training: process group, DDP, FSDP."""

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import dtype_name, fields, flag, whole

BYTES_PER_MEBIBYTE = 1024 * 1024
NO_PREFETCH = "NONE"
"""Matches torch's other names: BACKWARD_PRE, BACKWARD_POST."""


def distributed(scene: Scene) -> dict[str, Any] | None:
    """Return the settings of the process group and of the model's wrapper."""
    import torch.distributed as group

    wrapper = _wrapper(scene)
    strategy, settings = wrapper if wrapper else (None, {})
    if not (group.is_available() and group.is_initialized()):
        return {"strategy": strategy, **settings} if strategy else None
    return {
        **fields(
            backend=lambda: str(group.get_backend()),
            world_size=group.get_world_size,
            rank=group.get_rank,
            local_rank=lambda: int(os.environ["LOCAL_RANK"]),
        ),
        "strategy": strategy,
        **settings,
    }


def _wrapper(scene: Scene) -> tuple[str, dict[str, Any]] | None:
    """Return the name and settings of a wrapper: in the passed model, otherwise a live object."""
    modules = getattr(scene.given.model, "modules", None)  # an engine's wrapper may lack it
    given = list(modules()) if callable(modules) else [scene.given.model]
    return _among(given) or _among(scene.modules)


def _among(modules: Iterable[Any]) -> tuple[str, dict[str, Any]] | None:
    from torch.nn import DataParallel
    from torch.nn.parallel import DistributedDataParallel

    if sharded := _all(modules, _fully_sharded()):
        return "FSDP", _of_fsdp(sharded[0])
    if units := _all(modules, _fully_sharded_2()):
        return "FSDP2", _of_fsdp2(units)
    if replicated := _all(modules, DistributedDataParallel):
        return "DDP", _of_ddp(replicated[0])
    return ("DataParallel", {}) if _all(modules, DataParallel) else None


def _all(modules: Iterable[Any], kind: type | None) -> list[Any]:
    return [module for module in modules if kind and issubclass(type(module), kind)]


def _fully_sharded() -> type | None:
    """Return FSDP's class if it was imported; otherwise no instance exists."""
    module = sys.modules.get("torch.distributed.fsdp")
    return getattr(module, "FullyShardedDataParallel", None)


def _fully_sharded_2() -> type | None:
    """Return FSDP2's class, which torch 2.6 moved."""
    modules_with_fsdp = ("torch.distributed.fsdp", "torch.distributed._composable.fsdp")
    classes = (getattr(sys.modules.get(module), "FSDPModule", None) for module in modules_with_fsdp)
    return next(filter(None, classes), None)


def _of_fsdp(wrapper: Any) -> dict[str, Any]:
    return fields(
        sharding_strategy=lambda: wrapper.sharding_strategy.name,
        backward_prefetch=lambda: getattr(wrapper.backward_prefetch, "name", NO_PREFETCH),
        forward_prefetch=lambda: flag(wrapper.forward_prefetch),
        limit_all_gathers=lambda: flag(wrapper.limit_all_gathers),
        cpu_offload=lambda: flag(wrapper.cpu_offload.offload_params),
    ) | _types(lambda: wrapper.mixed_precision)


def _of_fsdp2(units: list[Any]) -> dict[str, Any]:
    """Return settings that all units share; `fully_shard` stores them in private attributes.

    Only the mesh is public, through the parameters.
    """
    return fields(
        mesh_shape=lambda: _same(_mesh_shape(unit) for unit in units),
        reshard_after_forward=lambda: _reshards(units),
        cpu_offload=lambda: _same(_is_offloaded(group) for group in _groups(units)),
        forward_prefetch=lambda: any(
            _state(unit)._states_to_forward_prefetch  # noqa: SLF001 (guarded)
            for unit in units
        ),
    ) | _types(lambda: _same(group.mp_policy for group in _groups(units)))


def _state(unit: Any) -> Any:
    return unit._get_fsdp_state()  # noqa: SLF001 (guarded: a torch without it costs the field)


def _groups(units: list[Any]) -> list[Any]:
    """Return the units' parameter groups; none if nested units hold all parameters."""
    return [group for unit in units for group in _groups_of(_state(unit))]


def _groups_of(state: Any) -> list[Any]:
    """Return a unit's groups; newer torch versions have a list of them, older ones one or None."""
    if (several := getattr(state, "_fsdp_param_groups", None)) is not None:
        return list(several)
    return [group for group in [state._fsdp_param_group] if group is not None]  # noqa: SLF001


def _reshards(units: list[Any]) -> bool | None:
    """Return whether units free gathered parameters after their forward pass.

    The outermost unit counts only if it is the only one: torch never frees its parameters early.
    """
    inner = [unit for unit in units if not _state(unit)._is_root]  # noqa: SLF001 (guarded)
    groups = _groups(inner) or _groups(units)
    return flag(_same(group.post_forward_mesh_info is not None for group in groups))


def _is_offloaded(group: Any) -> bool:
    kinds = type(group.offload_policy).__mro__
    return any(kind.__name__ == "CPUOffloadPolicy" for kind in kinds)


def _mesh_shape(unit: Any) -> str:
    """Return a mesh's size in each dimension, as `2x8`."""
    mesh = next(iter(unit.parameters())).device_mesh
    return "x".join(str(size) for size in mesh.shape)


def _same(values: Iterable[Any]) -> Any:
    """Return the common value; None if values differ, or there are none."""
    first, *others = [*values] or [None]
    return first if all(value == first for value in others) else None


def _of_ddp(wrapper: Any) -> dict[str, Any]:
    return fields(
        bucket_cap_mb=lambda: _bucket_cap_mb(wrapper),
        broadcast_buffers=lambda: flag(wrapper.broadcast_buffers),
        find_unused_parameters=lambda: flag(wrapper.find_unused_parameters),
        gradient_as_bucket_view=lambda: flag(wrapper.gradient_as_bucket_view),
        static_graph=lambda: flag(wrapper.static_graph),
    ) | _types(lambda: wrapper.mixed_precision)


def _bucket_cap_mb(wrapper: Any) -> float | None:
    """Return the size of DDP's buckets in MiB, as passed to DDP."""
    size_bytes = whole(wrapper.bucket_bytes_cap)
    return None if size_bytes is None else size_bytes / BYTES_PER_MEBIBYTE


def _types(mixed_precision: Callable[[], Any]) -> dict[str, Any]:
    """Return the dtypes of a mixed-precision policy; None for a dtype that it leaves unchanged."""
    return fields(
        param_dtype=lambda: _type(mixed_precision().param_dtype),
        reduce_dtype=lambda: _type(mixed_precision().reduce_dtype),
        buffer_dtype=lambda: _type(mixed_precision().buffer_dtype),
    )


def _type(dtype: Any) -> str | None:
    return None if dtype is None else dtype_name(dtype)
