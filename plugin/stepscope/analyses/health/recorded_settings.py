"""Settings of the run that were written and are not understood."""

from collections.abc import Iterator

from stepscope.analyses.health._check import NOTHING, Check
from stepscope.analyses.settings.recorded_settings import SCHEMA, recorded_settings
from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace

NAMED = 5


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report settings that were dropped; advice then goes by what the events show."""
    found = recorded_settings(trace)
    if found.failed:
        yield HealthItem(
            kind="settings-not-recorded",
            severity="info",
            count=len(found.failed),
            nature="gap",
            message=f"the trace handler could not look at {', '.join(found.failed[:NAMED])}",
            action="advice goes by what the events show instead",
        )
    if not found.lost:
        return
    named = ", ".join(found.lost[:NAMED]) + (", …" if len(found.lost) > NAMED else "")
    settings = count(len(found.lost), "recorded setting is", "recorded settings are")
    why = f" (schema {found.schema}; known up to {SCHEMA})" if found.is_newer else ""
    yield HealthItem(
        kind="settings-not-understood",
        severity="info",
        count=len(found.lost),
        message=f"{settings} not understood{why}: {named}",
        action="left out: advice goes by what the events show instead",
        remedy="pip install --upgrade stepscope" if found.is_newer else "",
    )


CHECK = Check(
    damages={"settings-not-understood": NOTHING, "settings-not-recorded": NOTHING}, check=check
)
