"""Sources of copies to the device: operators, source lines, and names of the device in code."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.devices.host_copies import HostCopies, copies_to_device
from stepscope.analyses.idle.copy_cost import CopySite, copy_sites
from stepscope.base.findings import EventReference, EvidenceTable, Link, SourceLine
from stepscope.base.formatting import size
from stepscope.model.trace import Trace
from stepscope.rules import applies_if
from stepscope.rules.shared import facts

TUTORIAL = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
ANY_DEVICE = "device"
"""The argument of `.to()` for an unknown device."""
LOADING_RATIO = 10
"""A first step with so many times the copies, or bytes, of any later step loads the model."""


def to_device(trace: Trace, device: DeviceActivity) -> HostCopies:
    """Return all copies to a device in the window, except those that load the model.

    Raises:
        NotApplicableError: there is none.
    """
    copies = copies_to_device(trace, device)
    applies_if(len(copies.rows), "nothing was copied to the device while it was recorded")
    return copies.select(~_loads_model(trace, copies))


def _loads_model(trace: Trace, copies: HostCopies) -> NDArray[np.bool_]:
    """Return a mask of copies in a first step that has far more than any later step."""
    start = complete_steps(trace).steps["start_ns"].to_numpy()
    if len(start) < 2:
        return np.zeros(len(copies.rows), dtype=bool)
    step = np.maximum(np.searchsorted(start, copies.call_start_ns, side="right") - 1, 0)
    number = np.bincount(step, minlength=len(start))
    amount = np.bincount(step, weights=copies.bytes, minlength=len(start))
    is_more = any(per[0] > LOADING_RATIO * per[1:].max() for per in (number, amount))
    return np.asarray((step == 0) & is_more)


def table(sites: Iterable[CopySite]) -> EvidenceTable:
    """Return the sources of copies, the costliest first."""
    return facts.table(
        "Sources of the copies",
        {
            "Operator": "text",
            "Line": "text",
            "Bytes per copy": "bytes",
            "Copies": "count",
            "On the device in total": "ns",
            "In the calls in total": "ns",
        },
        (
            facts.row(
                site.operator,
                site.line,
                site.bytes,
                site.count,
                site.device_ns,
                site.host_ns,
                link=Link(view="operators", search=site.operator, source=site.line or None),
            )
            for site in sites
        ),
    )


def sources(
    trace: Trace, copies: HostCopies, order: NDArray[np.int64], most: int = 10
) -> tuple[tuple[EvidenceTable, ...], tuple[EventReference, ...], tuple[SourceLine, ...]]:
    """Return a table of the sources of copies, the first copies in an order, and their lines."""
    sites = copy_sites(trace, copies)
    events = tuple(_event(trace, copies, index) for index in order[:most].tolist())
    lines = event_references.source_lines(site.line for site in sites)
    return (table(sites),), events, lines


def _event(trace: Trace, copies: HostCopies, index: int) -> EventReference:
    line = event_references.line_of_host_call(trace, int(copies.owner[index]))
    amount = size(float(copies.bytes[index]))
    detail = f"{amount} from {line}" if line else amount
    return event_references.device_event(trace, int(copies.rows[index]), detail=detail)


def largest(copies: HostCopies) -> NDArray[np.int64]:
    """Return the copies' indexes, the largest first."""
    return np.argsort(-copies.bytes, kind="stable")


def longest(copies: HostCopies) -> NDArray[np.int64]:
    """Return the copies' indexes, the longest first."""
    return np.argsort(copies.start_ns - copies.end_ns, kind="stable")


def target(trace: Trace) -> str:
    """Return the argument of `.to()` for this device: `"cuda"`."""
    module = trace.dialect.terms.get("module", "")
    return f'"{module}"' if module and module != "accelerator" else ANY_DEVICE


def module(trace: Trace) -> str:
    """Return torch's module for the device: `torch.cuda`."""
    return f"torch.{trace.dialect.terms.get('module', 'accelerator')}"
