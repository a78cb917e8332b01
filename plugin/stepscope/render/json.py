"""A report as one JSON object; `stepscope schema` prints its schema."""

import msgspec

from stepscope.report import Report


def render(report: Report) -> str:
    """Return the report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
