"""Damage to the file's text that the reader reported."""

from collections.abc import Iterable, Iterator, Mapping

from stepscope.analyses.health._check import NOTHING, PARTS, UNLIKELY_SHARE, Parts, by_share
from stepscope.base.findings import Severity
from stepscope.base.report import HealthExample, HealthItem
from stepscope.ingest import Incident
from stepscope.model.trace import TRUNCATIONS, Trace

WHOLE = TRUNCATIONS | {"interleaved-documents"}
"""Incidents that put the whole file in doubt, however often they occur."""
LOSING = frozenset({"skipped-events", "not-an-event", "impossible-times"})
"""Incidents that lose events: one of a million changes nothing."""
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
"""Incidents whose values were repaired, or count as not recorded."""
DAMAGES: Mapping[str, Parts] = {
    **dict.fromkeys(sorted(WHOLE | LOSING), PARTS),
    **dict.fromkeys(sorted(MENDED), NOTHING),
    "damaged-metadata": frozenset({"memory", "ranks"}),
    "trailing-data": NOTHING,  # another trace, of which nothing is shown
}


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report each of the reader's incidents."""
    for incident in trace.columns.incidents:
        yield HealthItem(
            kind=incident.kind,
            severity=_severity(trace, incident),
            count=_count(incident),
            message=_message(incident),
            remedy=incident.remedy,
            nature="damage",
            action=incident.action,
            lost_bytes=incident.lost_bytes,
            examples=tuple(
                HealthExample(offset_bytes=example.offset_bytes, text=example.text)
                for example in incident.examples[: _count(incident)]
            ),
        )


def losses(trace: Trace) -> tuple[HealthItem, ...]:
    """Return the damage to the file that puts all its results in doubt."""
    return losses_among(check(trace))


def lost_events(trace: Trace) -> tuple[HealthItem, ...]:
    """Return the damage by which so many events are missing that no result holds for certain."""
    return tuple(item for item in losses(trace) if DAMAGES[item.kind] == PARTS)


def losses_among(items: Iterable[HealthItem]) -> tuple[HealthItem, ...]:
    """Return those of a trace's health items that put all its results in doubt."""
    serious = (
        item for item in items if item.severity != "info" and DAMAGES.get(item.kind, NOTHING)
    )
    return tuple(sorted(serious, key=lambda item: item.severity != "critical"))


def _severity(trace: Trace, incident: Incident) -> Severity:
    if incident.kind in MENDED:
        return "info"
    if incident.kind not in LOSING:
        return "warning"
    lost_events = incident.count / max(1, len(trace) + incident.count)
    lost_bytes = incident.lost_bytes / max(1, trace.columns.inflated_bytes)
    return by_share(max(lost_events, lost_bytes), UNLIKELY_SHARE)


def _count(incident: Incident) -> int:
    """Return the number of occurrences; a file ends only once."""
    return 1 if incident.kind in TRUNCATIONS else incident.count


def _message(incident: Incident) -> str:
    count = _count(incident)
    return f"{count:,} {incident.message}" if count > 1 else incident.message
