"""How the training is spread over processes."""

import os
import sys
from typing import Any

from stepscope.recording.scene import Scene
from stepscope.recording.subjects._known import flag, known, whole

BYTES_A_MEBIBYTE = 1024 * 1024


def distributed(scene: Scene) -> dict[str, Any] | None:
    """Return the process group, and the wrapper that the model is in."""
    import torch.distributed as group

    wrapper = _wrapper(scene)
    strategy, told = wrapper if wrapper else (None, {})
    if not (group.is_available() and group.is_initialized()):
        return {"strategy": strategy, **told} if strategy else None
    return {
        **known(
            backend=lambda: str(group.get_backend()),
            world_size=group.get_world_size,
            rank=group.get_rank,
            local_rank=lambda: int(os.environ["LOCAL_RANK"]),
        ),
        "strategy": strategy,
        **told,
    }


def _wrapper(scene: Scene) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the settings of the first wrapper that is alive."""
    from torch.nn import DataParallel
    from torch.nn.parallel import DistributedDataParallel

    modules = [module for module in (scene.given.model, *scene.modules) if module is not None]
    if sharded := _first(modules, _fully_sharded()):
        return "FSDP", known(sharding_strategy=lambda: sharded.sharding_strategy.name)
    if _first(modules, _fully_sharded_2()):
        return "FSDP2", {}
    if replicated := _first(modules, DistributedDataParallel):
        return "DDP", _of_ddp(replicated)
    return ("DataParallel", {}) if _first(modules, DataParallel) else None


def _first(modules: list[Any], kind: type | None) -> Any:
    return kind and next((module for module in modules if issubclass(type(module), kind)), None)


def _fully_sharded() -> type | None:
    """Return FSDP's class, if anything imported it: nothing is of it else."""
    module = sys.modules.get("torch.distributed.fsdp")
    return getattr(module, "FullyShardedDataParallel", None)


def _fully_sharded_2() -> type | None:
    """Return FSDP2's class; before torch 2.6 it was in another place."""
    places = ("torch.distributed.fsdp", "torch.distributed._composable.fsdp")
    classes = (getattr(sys.modules.get(place), "FSDPModule", None) for place in places)
    return next(filter(None, classes), None)


def _of_ddp(wrapper: Any) -> dict[str, Any]:
    return known(
        bucket_cap_mb=lambda: _bucket_cap_mb(wrapper),
        find_unused_parameters=lambda: flag(wrapper.find_unused_parameters),
        gradient_as_bucket_view=lambda: flag(wrapper.gradient_as_bucket_view),
        static_graph=lambda: flag(wrapper.static_graph),
    )


def _bucket_cap_mb(wrapper: Any) -> float | None:
    """Return the size of DDP's buckets in MiB, as its argument has it."""
    size_bytes = whole(wrapper.bucket_bytes_cap)
    return None if size_bytes is None else size_bytes / BYTES_A_MEBIBYTE
