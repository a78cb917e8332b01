"""Settings of the run that were recorded and are not understood."""

from collections.abc import Iterator

from stepscope.analyses.settings.recorded_settings import SCHEMA, recorded_settings
from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace

NAMED = 5


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report settings that were dropped; advice then rests on the events."""
    recorded = recorded_settings(trace)
    if recorded.failed:
        yield HealthItem(
            kind="settings-not-recorded",
            severity="info",
            count=len(recorded.failed),
            nature="gap",
            message=f"the trace handler could not read {', '.join(recorded.failed[:NAMED])}",
            action="advice rests on the events instead",
        )
    if not recorded.lost:
        return
    named = ", ".join(recorded.lost[:NAMED]) + (", …" if len(recorded.lost) > NAMED else "")
    phrase = count(len(recorded.lost), "recorded setting is", "recorded settings are")
    why = f" (schema {recorded.schema}; supported up to {SCHEMA})" if recorded.is_newer else ""
    yield HealthItem(
        kind="settings-not-understood",
        severity="info",
        count=len(recorded.lost),
        message=f"{phrase} not understood{why}: {named}",
        action="left out: advice rests on the events instead",
        remedy="pip install --upgrade stepscope" if recorded.is_newer else "",
    )


DAMAGES = {"settings-not-understood": (), "settings-not-recorded": ()}
