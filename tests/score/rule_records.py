"""How each rule fared, in the file that the package carries: its rules' pages say it."""

from loading import ROOT
from score.page import Part
from stepscope.render.rule_page import RuleRecord, RunCounts, encode_records

FILE = ROOT / "plugin" / "stepscope" / "render" / "rule_records.json"


def content(parts: dict[str, Part]) -> bytes:
    """Return the file: what was recorded, then what was written from schedules."""
    recorded, synthetic = (_kinds(parts[name]) for name in ("recorded", "synthetic"))
    return encode_records(
        {
            rule: RuleRecord(recorded=recorded[rule], synthetic=synthetic[rule])
            for rule in sorted(recorded)
            if recorded[rule] != RunCounts() or synthetic[rule] != RunCounts()
        }
    )


def _kinds(of: Part) -> dict[str, RunCounts]:
    return {
        rule: RunCounts(
            hit_count=len(each.found),
            missed_count=len(each.missed),
            also_true_count=len(each.also_true),
            false_count=len(each.false),
        )
        for rule, each in of.rules.items()
    }
