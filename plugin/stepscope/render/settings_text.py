"""The recorded settings of a run in words."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from stepscope.base.formatting import size
from stepscope.base.report import RunSetting
from stepscope.render.phrases import plain

HOW_TO_RECORD = 'on_trace_ready=stepscope.trace_handler("log/run")'
NOT_RECORDED = "The run's settings were not recorded. To record them:"
MOST_TOLD = (
    ("torch", "version"),
    ("devices", "name"),
    ("host", "usable_cpu_count"),
    ("batch", "sample_count"),
    ("dataloaders", "batch_size"),
    ("dataloaders", "worker_count"),
    ("dataloaders", "pin_memory"),
    ("model", "device"),
    ("precision", "default_dtype"),
    ("precision", "autocast.dtype"),
    ("precision", "float32_matmul"),
    ("compile", "is_compiled"),
    ("distributed", "strategy"),
    ("distributed", "world_size"),
)
"""What is told of them in one line, in this order."""


def groups(settings: Iterable[RunSetting]) -> tuple[tuple[str, str], ...]:
    """Return each group's name, and its settings in a line."""
    return tuple((plain(name), ", ".join(map(_told, of))) for name, of in groupby(settings, _group))


def brief(settings: Sequence[RunSetting]) -> str:
    """Return the settings that matter most, in a line; empty where none was recorded."""
    known: dict[tuple[str, str], RunSetting] = {}
    for each in settings:
        known.setdefault((each.subject.partition("[")[0], each.name), each)
    told = [_told(known[key]) for key in MOST_TOLD if key in known]
    return f"Recorded settings: {', '.join(told)}" if told else ""


def _group(setting: RunSetting) -> str:
    return setting.group


def _told(setting: RunSetting) -> str:
    label = setting.label if setting.label.isupper() else _small(setting.label)
    return plain(f"{label} {_value(setting)}")


def _small(label: str) -> str:
    """Return a label within a line: `Batch size` as `batch size`, but `CUDA` as it is."""
    first = label.partition(" ")[0]
    return label if first[1:].lower() != first[1:] else label[:1].lower() + label[1:]


def _value(setting: RunSetting) -> str:
    if isinstance(setting.value, str):
        return setting.value
    if setting.unit == "bytes":
        return size(setting.value)
    return f"{setting.value:,}" if isinstance(setting.value, int) else f"{setting.value:.3g}"
