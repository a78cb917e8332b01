"""Write the skeleton of a rule and of its cases: `make new-rule NAME=pinned-memory-off`.

The skeleton is a complete rule on a made-up operator, with cases that pass, so that each edit can
be tried at once. A test fails for as long as `TODO` stands in the rule.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RULE = '''"""TODO: the bad state, in one sentence."""

from stepscope.analyses.core import requirements
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases

OPERATOR = "TODO::slow_operator"


class Options(Thresholds):
    """TODO: the threshold from which the operator is reported."""

    least_share: float = option(
        0.05, "Time in the operator, of the window.", origin="TODO: the source of 5 %"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report TODO."""
    calls = trace.host_calls
    requirements.applies_if(len(calls), "the trace has no operators")
    slow = calls[calls["name"] == OPERATOR]
    time = intervals.union(slow["start_ns"].to_numpy(), slow["end_ns"].to_numpy())
    time_ns = intervals.duration_ns(time)
    if not len(slow) or phrases.fraction_of_window(trace, time_ns) < options.least_share:
        return
    yield Finding(
        message=f"{count(len(slow), 'call')} of {OPERATOR} take "
        f"{phrases.time_and_fraction(trace, time_ns)}.",
        evidence=(
            facts.count("Calls in total", len(slow), "operators"),
            facts.duration("Time in them in total", time_ns),
        ),
        claims=(Claim(time, HALF_TO_ALL, "All time in the operator; half of it at least."),),
    )


RULE = Rule(
    id="{id}",
    title="TODO: the bad state, without a full stop",
    passed="TODO: the good state, without a full stop",
    category="TODO: one of `stepscope rules`",
    why="TODO: why that state costs time.",
    detects=f"Calls of {{OPERATOR}}. It reports from `least_share` of the window on.",
    saving="All time in the operator; half of it at least.",
    fix=Fix("TODO: what to do.", "TODO", verify=f"{{OPERATOR}} is gone from Operators."),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({{"host calls", "steps"}}),
    priority="runtime",
    links=("TODO.html",),
    origin="TODO: where the check comes from",
    since="{version}",
)
'''
CASES = """rule: {id}
never_in_2021: the operator is newer  # TODO
never_on_amd: TODO

# A step: TODO::slow_operator takes 100 us of 1,000 us: 10 %.

the operator takes a tenth of each step:
  schedule:
    machine: h100
    actions:
      - steps: 4
        body: [{{op: "TODO::slow_operator", us: 100}}, {{host: 900}}]
  finds:
    - severity: warning
      confidence: high
      saves_ns: [100_000, 50_000, 100_000]
      evidence: {{Calls in total: 4, Time in them in total: 400_000}}
      message: 4 calls of TODO::slow_operator take 100 µs per step (10.0 %).

it takes just enough to be reported:
  near: least_share
  schedule:
    - steps: 4
      body: [{{op: "TODO::slow_operator", us: 51}}, {{host: 949}}]
  finds:
    - {{severity: warning, confidence: high, saves_ns: [51_000, 25_500, 51_000]}}

it takes just too little to be reported:
  near: least_share
  schedule:
    - steps: 4
      body: [{{op: "TODO::slow_operator", us: 49}}, {{host: 951}}]
  finds: []

a trace without operators:
  trace: [[cuda_runtime, cudaDeviceSynchronize, 0, 100]]
  not_applicable: no operators
"""


def main() -> int:
    """Write the two files, and print the steps that are left."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("name", help="the bad state as a noun phrase: pinned-memory-off")
    rule_id = parser.parse_args().name
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule_id):
        print(f"{rule_id!r} is no id: use small letters, digits and dashes, as in item-sync")
        return 2
    stem = rule_id.replace("-", "_")
    texts = {
        ROOT / "plugin" / "stepscope" / "rules" / f"{stem}.py": RULE,
        ROOT / "tests" / "rules" / f"{stem}.yml": CASES,
    }
    if there := [path for path in texts if path.exists()]:
        print(f"{there[0].relative_to(ROOT)} exists already")
        return 2
    version = re.findall(
        r'__version__ = "(.+)"', (ROOT / "plugin/stepscope/_version.py").read_text()
    )[0]
    for path, text in texts.items():
        filled = text.replace("{id}", rule_id).replace("{version}", version)
        path.write_text(filled.replace("{{", "{").replace("}}", "}"), encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    print(f"Now replace each TODO, add a line with `{rule_id}` to CHANGELOG.md, and run")
    print(f"    make rule RULE={rule_id}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
