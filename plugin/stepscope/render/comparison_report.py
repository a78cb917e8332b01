"""A comparison as text or Markdown: a part that a form fails to show costs no other.

Only where a form fails are the parts of each comparison tried alone.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any

import msgspec

from stepscope.base.errors import in_one_line
from stepscope.comparison.messages import Comparison, ComparisonReport
from stepscope.render.separate_failures import with_errors

log = logging.getLogger(__name__)

Form = Callable[[ComparisonReport], str]
PARTS: Mapping[str, str] = MappingProxyType(
    {
        "settings": "Settings that differ",
        "warnings": "Caveats",
        "waterfall": "Parts of the step",
        "figures": "Device metrics",
        "idle": "Causes of idle time",
        "advice": "Findings",
        "savings": "Savings",
        "operators": "Operators",
        "device_work": "Work on the device",
    }
)
"""Fields of a comparison that a form can do without; savings are shown with findings."""


def render(form: str, report: ComparisonReport, **options: Any) -> str:  # noqa: ANN401 (those of the form)
    """Return the report in a form, by the module `comparison_<form>`."""
    show: Form = partial(import_module(f"stepscope.render.comparison_{form}").render, **options)
    try:
        return show(report)
    except Exception as error:  # a bug in one part must not hide the others
        log.warning("the comparison as %s failed: %s", form, in_one_line(error))
    comparisons = tuple(_shown(comparison, report, show) for comparison in report.comparisons)
    return show(msgspec.structs.replace(report, comparisons=comparisons))


def _shown(comparison: Comparison, report: ComparisonReport, show: Form) -> Comparison:
    """Return a comparison of which the form shows everything; a caveat names what is left out."""

    def error(of: Comparison, field: str, items: Sequence[object]) -> str:
        with_items = msgspec.structs.replace(of, **{field: tuple(items)})
        try:
            show(msgspec.structs.replace(report, comparisons=(with_items,)))
        except Exception as error:
            return in_one_line(error)
        return ""

    shown = msgspec.structs.replace(comparison, **dict.fromkeys(PARTS, ()))
    notes: list[str] = []
    for field, name in PARTS.items():
        tried = list(with_errors(getattr(comparison, field), partial(error, shown, field)))
        reasons = [reason for _, reason in tried if reason]
        items = tuple(item for item, reason in tried if not reason)
        shown = msgspec.structs.replace(shown, **{field: items})
        if reasons:
            notes.append(f"{name}: {len(reasons)} left out, stepscope failed ({reasons[0]}).")
    return msgspec.structs.replace(shown, warnings=(*shown.warnings, *notes))
