"""Record of each rule, in a file of the package, for the pages of the rules."""

from loading import ROOT
from score.page import Part
from stepscope.render.rule_page import RuleRecord, RunCounts, encode_records

FILE = ROOT / "plugin" / "stepscope" / "render" / "rule_records.json"


def content(parts: dict[str, Part]) -> bytes:
    """Return the content of the file, for recorded and for synthetic runs."""
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
            hit_count=len(record.hits),
            missed_count=len(record.missed),
            also_true_count=len(record.also_true),
            false_count=len(record.false),
        )
        for rule, record in of.rules.items()
    }
