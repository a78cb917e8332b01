"""A report as one JSON object; `stepscope schema` prints the schema of `advise`'s."""

import msgspec

from stepscope.base.report import HealthReport, Report
from stepscope.comparison.messages import ComparisonReport


def render(report: Report | HealthReport | ComparisonReport) -> str:
    """Return the report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
