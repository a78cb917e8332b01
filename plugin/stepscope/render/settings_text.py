"""The recorded settings of a run as text."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from stepscope.base.formatting import size
from stepscope.base.plain_text import plain
from stepscope.base.report import RunSetting

HOW_TO_RECORD = 'on_trace_ready=stepscope.trace_handler("log/run")'
NOT_RECORDED = "The run's settings were not recorded. To record them:"
BRIEF = (
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
"""Settings of the brief line, in its order."""


def groups(settings: Iterable[RunSetting]) -> tuple[tuple[str, str], ...]:
    """Return each group's name, and its settings in one line."""
    return tuple(
        (plain(name), ", ".join(map(_text, of)))
        for name, of in groupby(settings, attrgetter("group"))
    )


def brief(settings: Sequence[RunSetting]) -> str:
    """Return the most important settings in one line; empty where none was recorded."""
    first: dict[tuple[str, str], RunSetting] = {}
    for setting in settings:
        first.setdefault((setting.subject.partition("[")[0], setting.name), setting)
    texts = [_text(first[key]) for key in BRIEF if key in first]
    return f"Recorded settings: {', '.join(texts)}" if texts else ""


def _text(setting: RunSetting) -> str:
    label = setting.label if setting.label.isupper() else _small(setting.label)
    return plain(f"{label} {_value(setting)}")


def _small(label: str) -> str:
    """Return a label inside a sentence: `batch size` of `Batch size`, but `CUDA` as it is."""
    first = label.partition(" ")[0]
    return label if first[1:].lower() != first[1:] else label[:1].lower() + label[1:]


def _value(setting: RunSetting) -> str:
    if isinstance(setting.value, str):
        return setting.value
    if setting.unit == "bytes":
        return size(setting.value)
    return f"{setting.value:,}" if isinstance(setting.value, int) else f"{setting.value:.3g}"
