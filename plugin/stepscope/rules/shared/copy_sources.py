"""What the rules on copies to the device have in common: what asked for them, and the code."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references
from stepscope.analyses.core.complete_steps import complete_steps
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.devices.host_copies import HostCopies, copies_to_device
from stepscope.analyses.idle.copy_cost import CopySite, copy_sites
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import EventReference, EvidenceTable, Link, SourceLine, Unit
from stepscope.base.formatting import size
from stepscope.model.trace import Trace
from stepscope.rules.shared import facts

TUTORIAL = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
ANY_DEVICE = "device"
"""What `.to()` takes where it is not known which device it is."""
LOADING_RATIO = 10
"""A first step with so many times the copies, or bytes, of any later one loads the model."""
COLUMNS: Mapping[str, Unit] = {
    "Asked for by": "text",
    "Line": "text",
    "Bytes each": "bytes",
    "Copies": "count",
    "On the device": "ns",
    "In the calls": "ns",
}


def to_device(trace: Trace, device: DeviceActivity) -> HostCopies:
    """Return all copies to a device within the window, but for those that load the model.

    Raises:
        NotApplicableError: there is none.
    """
    copies = copies_to_device(trace, device)
    if not len(copies.rows):
        msg = "nothing was copied to the device while it was recorded"
        raise NotApplicableError(msg)
    return copies.chosen(~_of_loading(trace, copies))


def _of_loading(trace: Trace, copies: HostCopies) -> NDArray[np.bool_]:
    """Tell which copies are a one-off: those of a first step that has far more than any later."""
    start = complete_steps(trace).steps["start_ns"].to_numpy()
    if len(start) < 2:
        return np.zeros(len(copies.rows), dtype=bool)
    step = np.maximum(np.searchsorted(start, copies.call_start_ns, side="right") - 1, 0)
    number = np.bincount(step, minlength=len(start))
    amount = np.bincount(step, weights=copies.bytes, minlength=len(start))
    is_more = any(each[0] > LOADING_RATIO * each[1:].max() for each in (number, amount))
    return np.asarray((step == 0) & is_more)


def table(sites: Iterable[CopySite]) -> EvidenceTable:
    """Return what asked for copies, the costliest first."""
    rows = tuple(
        facts.row(
            site.operator,
            site.line or None,
            site.bytes,
            site.count,
            site.device_ns,
            site.host_ns,
            link=Link(view="operators", search=site.operator, source=site.line or None),
        )
        for site in sites
    )
    return facts.table("What asks for the copies", COLUMNS, rows)


def shown(
    trace: Trace, copies: HostCopies, order: NDArray[np.int64], most: int = 10
) -> tuple[tuple[EvidenceTable, ...], tuple[EventReference, ...], tuple[SourceLine, ...]]:
    """Return a table of what asked for copies, the first of them in an order, and their lines."""
    sites = copy_sites(trace, copies)
    events = tuple(_event(trace, copies, place) for place in order[:most].tolist())
    lines = event_references.source_lines(site.line for site in sites)
    return (table(sites),), events, lines


def _event(trace: Trace, copies: HostCopies, place: int) -> EventReference:
    line = event_references.line_of_host_call(trace, int(copies.owner[place]))
    amount = size(float(copies.bytes[place]))
    detail = f"{amount} from {line}" if line else amount
    return event_references.device_event(trace, int(copies.rows[place]), detail=detail)


def largest(copies: HostCopies) -> NDArray[np.int64]:
    """Return the copies' places, the largest first."""
    return np.argsort(-copies.bytes, kind="stable")


def longest(copies: HostCopies) -> NDArray[np.int64]:
    """Return the copies' places, those that ran longest first."""
    return np.argsort(copies.start_ns - copies.end_ns, kind="stable")


def target(trace: Trace) -> str:
    """Return what `.to()` takes on this machine: `"cuda"`."""
    module = trace.dialect.terms.get("module", "")
    return f'"{module}"' if module and module != "accelerator" else ANY_DEVICE


def module(trace: Trace) -> str:
    """Return torch's module for the device: `torch.cuda`."""
    return f"torch.{trace.dialect.terms.get('module', 'accelerator')}"
