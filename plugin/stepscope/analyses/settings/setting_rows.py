"""Recorded settings as rows, for a table, for the page, and for comparisons of runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.analyses.settings.setting_kinds import setting_of
from stepscope.base.findings import Unit
from stepscope.base.report import RunSetting
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace

GROUPS = {
    "torch": "Software",
    "framework": "Framework",
    "host": "Host",
    "devices": "Device",
    "model": "Model",
    "batch": "Batch",
    "dataloaders": "DataLoader",
    "precision": "Precision",
    "optimizers": "Optimizer",
    "compile": "Compiler",
    "distributed": "Ranks",
    "cudnn": "cuDNN",
    "allocator": "Allocator",
    "profiler": "Profiler",
    "environment": "Environment",
}
"""Subjects and their titles, in the order of the page."""
NOT_SHOWN = frozenset({"index", "git", "is_in_use"})
"""Settings that identify equal subjects; they are only in the table."""
UNITS: Mapping[str, Unit] = {"count": "count", "bytes": "bytes", "flag": "text", "text": "text"}
SETTINGS: Schema = (
    Column("subject", "object", "text", "The subject, such as `dataloaders[0]`."),
    Column("name", "object", "text", "The setting's recorded name, such as `worker_count`."),
    Column("label", "object", "text", "The name as it is shown."),
    Column("value", "object", "text", "Its value; `true` or `false` for flags."),
    Column("unit", "object", "text", "`count`, `bytes`, `flag` or `text`."),
)


@dataclass(frozen=True, kw_only=True)
class SettingRow:
    """One setting."""

    subject: str
    index: int
    """Index among several of the subject, from 0; -1: there is only one."""
    name: str
    label: str
    value: bool | int | float | str
    unit: str


def setting_rows(trace: Trace) -> tuple[SettingRow, ...]:
    """Return every recorded setting, by subject."""
    return tuple(_rows(recorded_settings(trace)))


def _rows(settings: object) -> Iterator[SettingRow]:
    for subject in GROUPS:
        recorded = getattr(settings, subject)
        several = recorded if isinstance(recorded, tuple) else (recorded,)
        for index, item in enumerate(several):
            at = index if isinstance(recorded, tuple) else -1
            if isinstance(item, Mapping):
                for name, value in item.items():
                    yield SettingRow(
                        subject=subject, index=at, name=name, label=name, value=value, unit="text"
                    )
            else:
                yield from _of_subject(item, subject, at, "")


def _of_subject(recorded: Any, subject: str, index: int, inside: str) -> Iterator[SettingRow]:  # noqa: ANN401
    for declared in fields(recorded):
        value, name = getattr(recorded, declared.name), f"{inside}{declared.name}"
        setting = setting_of(declared)
        if is_dataclass(value):
            yield from _of_subject(value, subject, index, f"{name}.")
        elif setting is not None:
            for suffix, part in _values(value):
                yield SettingRow(
                    subject=subject,
                    index=index,
                    name=f"{name}.{suffix}" if suffix else name,
                    label=f"{setting.label} {suffix}".rstrip(),
                    value=part,
                    unit=setting.unit,
                )


def _values(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield a setting's values, each with a suffix for its name; none if unknown."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, tuple):
        yield "", ", ".join(value) or "none"
    elif value is not None:
        yield "", value


@public_table(
    "recorded-settings",
    SETTINGS,
    "One row per setting of the run that `stepscope.trace_handler` recorded: of loaders,"
    " precision, optimizers, devices and the like. Absent settings are unknown.",
)
def settings_table(trace: Trace) -> pd.DataFrame:
    """Return one row per setting; none without a trace handler."""
    rows = setting_rows(trace)
    columns = {
        "subject": [_subject(row) for row in rows],
        "name": [row.name for row in rows],
        "label": [row.label for row in rows],
        "value": [_text(row) for row in rows],
        "unit": [row.unit for row in rows],
    }
    return to_frame(SETTINGS, {name: np.array(of, dtype=object) for name, of in columns.items()})


def _subject(row: SettingRow) -> str:
    return row.subject if row.index < 0 else f"{row.subject}[{row.index}]"


def _text(row: SettingRow) -> str:
    return str(row.value).lower() if isinstance(row.value, bool) else str(row.value)


def run_settings(trace: Trace) -> tuple[RunSetting, ...]:
    """Return the settings to show, in groups; equal devices or loaders share a group."""
    grouped: dict[tuple[str, int], list[SettingRow]] = {}
    for row in setting_rows(trace):
        grouped.setdefault((row.subject, row.index), []).append(row)
    equal: dict[tuple[str, tuple[tuple[str, object], ...]], list[list[SettingRow]]] = {}
    for (subject, _), rows in grouped.items():
        same = tuple((row.name, row.value) for row in rows if row.name not in NOT_SHOWN)
        equal.setdefault((subject, same), []).append(rows)
    kinds = [subject for subject, _ in equal]
    return tuple(
        _shown(row, _group(subject, kinds, index, len(several)))
        for index, ((subject, _), several) in enumerate(equal.items())
        for row in several[0]
        if row.name not in NOT_SHOWN
    )


def _group(subject: str, kinds: list[str], index: int, count: int) -> str:
    name = GROUPS[subject]
    if kinds.count(subject) > 1:
        name = f"{name} {kinds[:index].count(subject) + 1}"
    return f"{name} \N{MULTIPLICATION SIGN} {count}" if count > 1 else name


def _shown(row: SettingRow, group: str) -> RunSetting:
    value = row.value
    if isinstance(value, bool):
        value = "on" if value else "off"
    return RunSetting(
        group=group,
        subject=_subject(row),
        name=row.name,
        label=row.label,
        value=value,
        unit=UNITS[row.unit],
    )
