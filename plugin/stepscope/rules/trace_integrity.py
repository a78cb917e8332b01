"""The trace itself is damaged, so that some answers are in doubt or withheld."""

from stepscope.analyses.health import health
from stepscope.base.findings import Evidence
from stepscope.base.formatting import capitalized, count
from stepscope.base.report import HealthItem
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace
from stepscope.rules.shared import facts

ROWS_SHOWN = 10


class Options(Thresholds):
    """No options: each health check has its own thresholds."""


def check(trace: Trace, _options: Options) -> Results:
    """Report what health found that puts answers in doubt, the worst first."""
    damaging = [item for item in health(trace) if item.effect != "none" and item.nature != "gap"]
    if not damaging:
        return
    withheld = [item for item in damaging if item.effect == "withheld"]
    worst = damaging[0]
    others = f" ({count(len(damaging) - 1, 'more thing')} beside it)" if len(damaging) > 1 else ""
    what = "are withheld" if withheld else "have low confidence"
    yield Finding(
        severity="warning" if withheld else "info",
        message=f"{capitalized(worst.message)}{others}: answers that rest on it {what}.",
        evidence=tuple(_evidence(item) for item in damaging[:ROWS_SHOWN]),
        fix=Fix(worst.remedy or RULE.fix.summary, verify=RULE.fix.verify, caveats=RULE.fix.caveats),
        subject=worst.kind,
    )


def _evidence(item: HealthItem) -> Evidence:
    return facts.count(item.kind.replace("-", " ").capitalize(), item.count)


RULE = Rule(
    id="trace-integrity",
    title="Parts of the trace are not reliable",
    passed="The trace is sound",
    category="profiling",
    why="Work without its launch, clocks that disagree, lost records and cut-off files make some "
    "figures wrong.",
    detects="Everything that the health checks call damage with an effect on answers: events that "
    "were repaired or lost, device work whose launch was not recorded, work before its launch, "
    "steps that are cut, ranks recorded twice. `stepscope health` lists each with its position.",
    silent=("Missing data (shapes, stacks, steps) is no damage.",),
    saving="None: it concerns the trace, not the program.",
    fix=Fix(
        "Record it again.",
        verify="`stepscope health` finds nothing that puts answers in doubt.",
        caveats=("Rules that do not rest on what is damaged are as right as ever.",),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset(),
    priority="trace",
    links=("https://github.com/pytorch/kineto/blob/main/libkineto/README.md",),
    origin="torch's _trace_validator; each health check's own",
)
