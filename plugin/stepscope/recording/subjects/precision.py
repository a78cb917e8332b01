"""Numeric precision, and cuDNN settings."""

from collections import Counter
from typing import Any

from stepscope.recording import autocast_detection
from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects import compilation, model
from stepscope.recording.subjects._fields import dtype_name, fields, flag


def precision(scene: Scene) -> dict[str, Any]:
    """Return the default dtype, autocast, TF32, and the dtypes of the model's parameters."""
    import torch

    return fields(
        default_dtype=lambda: dtype_name(torch.get_default_dtype()),
        autocast=lambda: _autocast(scene),
        float32_matmul=torch.get_float32_matmul_precision,
        tf32_matmul=lambda: _tf32(torch.backends.cuda.matmul),
        tf32_cudnn=lambda: _tf32(torch.backends.cudnn),
        model_dtype_counts=lambda: _dtype_counts(scene),
    )


def _tf32(backend: Any) -> bool | None:
    """Return whether TF32 is enabled; torch 2.9 renamed the setting and rejects mixed names."""
    try:
        return flag(backend.allow_tf32)
    except (AttributeError, RuntimeError):
        return bool(backend.fp32_precision == "tf32")


def _dtype_counts(scene: Scene) -> dict[str, int] | None:
    """Return the number of the model's parameters of each dtype."""
    root = model.root(scene)
    if root is None or model.is_flattened(root):
        return None
    counts: Counter[str] = Counter()
    for parameter in root.parameters():
        counts[dtype_name(parameter.dtype)] += parameter.numel()
    return dict(counts) or None


def _autocast(scene: Scene) -> dict[str, Any] | None:
    """Return autocast if certain: it was detected, is active, or a wrapper that was used has it.

    It is reported as off if the process was watched since the handler was created and nothing is
    compiled: compiled code contains autocast. Otherwise it is unknown; the operators' dtypes in the
    trace (`record_shapes=True`) show it.
    """
    import torch

    watched = autocast_detection.seen()
    if watched and watched["enabled"]:
        return dict(watched)

    for device in ("cuda", "cpu", "xpu"):
        if torch.is_autocast_enabled(device):
            return _enabled(device, torch.get_autocast_dtype(device))
    for region in scene.autocasts:
        if getattr(region, "_enabled", False) and hasattr(region, "prev"):  # it was entered
            return _enabled(region.device, region.fast_dtype)
    is_compiled = compilation.compiled(scene)["is_compiled"]
    return dict(watched) if watched and not is_compiled else None


def _enabled(device: str, dtype: Any) -> dict[str, Any]:
    return {"enabled": True, "device": device, "dtype": dtype_name(dtype)}


def cudnn(_: Scene) -> dict[str, Any]:
    """Return cuDNN's settings for selecting algorithms."""
    from torch.backends import cudnn as backend

    return fields(
        benchmark=lambda: flag(backend.benchmark),
        deterministic=lambda: flag(backend.deterministic),
        enabled=lambda: flag(backend.enabled),
    )
