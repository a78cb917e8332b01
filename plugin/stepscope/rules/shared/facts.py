"""Constructors of evidence and of tables of evidence: one call per measured fact.

A `link` is a view of the page, or a `Link` with what it searches there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from stepscope.base.findings import (
    Evidence,
    EvidenceColumn,
    EvidenceRow,
    EvidenceTable,
    Link,
    Unit,
    View,
)

Cell = int | float | str | None
LinkTarget = Link | View | None
WHOLE = frozenset({"ns", "bytes", "count"})


def duration(label: str, time_ns: float, link: LinkTarget = None) -> Evidence:
    """Return a duration; the label of a rate or a sum ends in "per step" or "in total"."""
    return _fact(label, time_ns, "ns", link)


def count(label: str, number: float, link: LinkTarget = None) -> Evidence:
    """Return a number of things."""
    return _fact(label, number, "count", link)


def fraction(label: str, value: float, link: LinkTarget = None) -> Evidence:
    """Return a part of a whole, 0 to 1; its label names the whole."""
    return _fact(label, value, "share", link)


def size(label: str, amount_bytes: float, link: LinkTarget = None) -> Evidence:
    """Return an amount of memory in bytes."""
    return _fact(label, amount_bytes, "bytes", link)


def bandwidth(label: str, bytes_per_second: float, link: LinkTarget = None) -> Evidence:
    """Return a rate of copying or communication."""
    return _fact(label, bytes_per_second, "bytes/s", link)


def text(label: str, value: str, link: LinkTarget = None) -> Evidence:
    """Return a fact in plain text."""
    return _fact(label, value, "text", link)


def code(label: str, value: str, link: LinkTarget = None) -> Evidence:
    """Return a name from the trace or from the program."""
    return _fact(label, value, "code", link)


def _fact(label: str, value: float | str, unit: Unit, link: LinkTarget) -> Evidence:
    target = Link(view=link) if isinstance(link, str) else link
    plain = value.item() if isinstance(value, np.generic) else value  # JSON has no numpy's types
    return Evidence(label=label, value=plain, unit=unit, link=target)


def row(*cells: Any, link: Link | None = None) -> EvidenceRow:  # noqa: ANN401 (NumPy's scalars too)
    """Return a row of a table that leads elsewhere than the table's other rows."""
    return EvidenceRow(cells=cells, link=link)


def table(
    label: str,
    columns: Mapping[str, Unit],
    rows: pd.DataFrame | Iterable[EvidenceRow | Sequence[Any]],
    link: LinkTarget = None,
) -> EvidenceTable:
    """Return a table: its columns' labels with their units, and its rows, the worst first.

    Rows are tuples of cells, `row(...)`, or a frame whose columns stand in that order. NaN and ""
    become empty cells. With a `link`, each row leads there: to a view, searching for the row's
    first cell, or to the `Link`.
    """
    if isinstance(rows, pd.DataFrame):
        rows = rows.itertuples(index=False, name=None)
    units = tuple(columns.values())
    return EvidenceTable(
        label=label,
        columns=tuple(EvidenceColumn(label=name, unit=unit) for name, unit in columns.items()),
        rows=tuple(_row(cells, units, link) for cells in rows),
    )


def _row(
    cells: EvidenceRow | Sequence[Any], units: Sequence[Unit], link: LinkTarget
) -> EvidenceRow:
    values = cells.cells if isinstance(cells, EvidenceRow) else cells
    plain = tuple(_cell(value, unit) for value, unit in zip(values, units, strict=True))
    if isinstance(cells, EvidenceRow):
        return EvidenceRow(cells=plain, link=cells.link)
    target = Link(view=link, search=str(plain[0] or "")) if isinstance(link, str) else link
    return EvidenceRow(cells=plain, link=target)


def _cell(value: Any, unit: Unit) -> Cell:  # noqa: ANN401 (NumPy's scalars too)
    """Return a value as JSON has it: no NumPy scalar, whole numbers as int, None for a blank."""
    value = value.item() if isinstance(value, np.generic) else value
    if value == "" or value != value:  # noqa: PLR0124 (NaN)
        return None
    if isinstance(value, float) and unit in WHOLE and value.is_integer():
        return int(value)
    return value  # type: ignore[no-any-return]
