"""A report as one JSON object; `stepscope schema` prints the schema of `advise`'s."""

import msgspec

from stepscope.comparison.messages import ComparisonReport
from stepscope.report import HealthReport, Report


def render(report: Report | HealthReport | ComparisonReport) -> str:
    """Return the report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
