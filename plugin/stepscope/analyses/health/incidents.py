"""What the reader met in the text of the file."""

from collections.abc import Iterable, Iterator, Mapping

from stepscope.analyses.health._check import (
    NOTHING,
    PARTS,
    UNLIKELY_SHARE,
    Check,
    Parts,
    by_share,
)
from stepscope.base.findings import Severity
from stepscope.base.report import HealthExample, HealthItem
from stepscope.ingest import Incident
from stepscope.model.trace import TRUNCATIONS, Trace

WHOLE = TRUNCATIONS | {"interleaved-documents"}
"""What puts all of the file in doubt, however often it was met."""
LOSING = frozenset({"skipped-events", "not-an-event", "impossible-times"})
"""What costs events: one of a million moves nothing."""
MENDED = frozenset(
    {
        "bare-word",
        "empty-value",
        "extra-comma",
        "invalid-escape",
        "invalid-utf8",
        "missing-comma",
        "not-a-number",
        "text-times",
    }
)
"""What was put right, or counts as not recorded."""
DAMAGES: Mapping[str, Parts] = {
    **dict.fromkeys(sorted(WHOLE | LOSING), PARTS),
    **dict.fromkeys(sorted(MENDED), NOTHING),
    "damaged-metadata": frozenset({"memory", "ranks"}),
    "trailing-data": NOTHING,  # another recording, of which nothing is shown
}


def check(trace: Trace) -> Iterator[HealthItem]:
    """Pass on each of the reader's incidents."""
    for incident in trace.columns.incidents:
        yield HealthItem(
            kind=incident.kind,
            severity=_severity(trace, incident),
            count=_count(incident),
            message=_counted(incident),
            remedy=incident.remedy,
            nature="damage",
            action=incident.action,
            lost_bytes=incident.lost_bytes,
            examples=tuple(
                HealthExample(offset_bytes=each.offset_bytes, text=each.text)
                for each in incident.examples[: _count(incident)]
            ),
        )


def losses(trace: Trace) -> tuple[HealthItem, ...]:
    """Return what reading the file showed that puts all that is told of it in doubt."""
    return losses_among(check(trace))


def losses_among(items: Iterable[HealthItem]) -> tuple[HealthItem, ...]:
    """Return those of a recording's health items that put all that is told of it in doubt."""
    found = (item for item in items if item.severity != "info" and DAMAGES.get(item.kind, NOTHING))
    return tuple(sorted(found, key=lambda item: item.severity != "critical"))


def _severity(trace: Trace, incident: Incident) -> Severity:
    if incident.kind in MENDED:
        return "info"
    if incident.kind not in LOSING:
        return "warning"
    lost_events = incident.count / max(1, len(trace) + incident.count)
    lost_bytes = incident.lost_bytes / max(1, trace.columns.inflated_bytes)
    return by_share(max(lost_events, lost_bytes), UNLIKELY_SHARE)


def _count(incident: Incident) -> int:
    """Return how often it was met; a file ends once, whatever was open then."""
    return 1 if incident.kind in TRUNCATIONS else incident.count


def _counted(incident: Incident) -> str:
    count = _count(incident)
    return f"{count:,} {incident.message}" if count > 1 else incident.message


CHECK = Check(damages=DAMAGES, check=check)
