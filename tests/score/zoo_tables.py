"""The accuracy page's section on the zoo: scripts as people write them."""

import math
import statistics
from collections.abc import Iterator, Sequence

from score.pair_tables import ANSWERS
from score.ranges import NO_ESTIMATE, Holds, Span
from score.tables import names, part, table
from score.zoo import AS_MUCH, ZooScript
from stepscope.base.formatting import count, duration, share

MS = 1e6
FIRST_LOOKS = (
    "A script leaves the group that judges as soon as a rule is mended on it, and those that are "
    "not understood leave first: the rest looks better than new scripts would. At their first "
    "look, before any change, 11 of the last 20 new scripts had their most expensive fault named "
    "first, 13 in the first three findings, and 9 of 19 healthy ones had a false alarm; of the 31 "
    "before, 12, 20 and 11."
)
FIRST_LOOK_ON_GPU = (
    "Of 15 scripts for a GPU (`sample_logs/record/zoo_gpu`), ten were timed and recorded in the "
    "two times that one was lent, with one turn each. At their first look the most expensive "
    "fault was named first in 0 of the first two and in 4 of the next eight, and in the first "
    "three findings in 1 and 6; 1 and 7 of the healthy ones had a false alarm. Six of the latter "
    "were of launching: after an early recording CUPTI stays loaded and slows launches, so that "
    "the measured step was up to 58 % longer than that of the script alone. Rules were mended on "
    "eight of them since."
)


def zoo_line(scripts: Sequence[ZooScript]) -> Iterator[str]:
    """Yield the summary of the section."""
    judged = [script for script in scripts if not script.is_seen and not script.is_on_gpu]
    if judged:
        first = sum(script.is_first for script in judged)
        yield (
            f"- **Zoo:** of {count(len(judged), 'script')} as people write them, on which no rule "
            f"was written, the most expensive fault is named first in {first} "
            f"({share(first / len(judged))}), and in the first three findings in "
            f"{sum(script.is_in_first_three for script in judged)}; "
            f"{sum(bool(script.false_alarms) for script in judged)} have a false alarm when "
            "healthy ([zoo](#zoo))."
        )


def zoo(scripts: Sequence[ZooScript]) -> Iterator[str]:
    """Yield the section; nothing without scripts."""
    if not scripts:
        return
    on_cpu = [script for script in scripts if not script.is_on_gpu]
    groups = {
        "scripts that judge": [script for script in on_cpu if not script.is_seen],
        "scripts on which rules were written": [script for script in on_cpu if script.is_seen],
        "scripts on a GPU": [script for script in scripts if script.is_on_gpu],
    }
    yield from _method(scripts)
    yield from _totals(groups)
    for title, group in groups.items():
        if not group:
            continue
        yield from (f"### {title[0].upper()}{title[1:]}", "")
        yield from table(
            ("script", "step:", "slowdown:", "first cause", "right first", "false alarms"),
            map(_script_row, group),
        )
        yield from table(
            ("fault", "script", "realised:", "position:", "estimated:", "contained"),
            (_fault_row(script, fault) for script in group for fault in script.faults),
        )


def _method(scripts: Sequence[ZooScript]) -> Iterator[str]:
    results = [script.stored.result for script in scripts]
    faults = sum(len(result.faults) for result in results)
    yield from (
        "## Scripts as people write them { #zoo }",
        "",
        f"{count(len(scripts), 'script')} with {count(faults, 'fault')} "
        "(`sample_logs/record/zoo`), written without a look at the rules. Each runs without a "
        "profiler with all its faults, "
        f"without each of them, and healthy, {len(results[0].turns[''])} turns each; then "
        "`stepscope record` records it with all faults, and healthy. *Realised*: what the fix of "
        "one fault saves of the step with all of them, with the 95 % confidence interval by turns. "
        "*Position*: of the first finding that names the fault, among those that name a cause, by "
        "its rule (`tests/score/zoo_causes.toml`), or by the line that `hot-path` or a rule of the "
        "DataLoader shows. *Right first*: the most expensive fault has position 1, or one that "
        f"costs {share(AS_MUCH)} of it or more, and less by no more than the turns vary. *False "
        "alarms*: "
        "rules at `warning` or above on the healthy script. *Slowdown*: the recorded step over the "
        "unrecorded one, measured in the same process. Run with torch "
        f"{', '.join(sorted({result.torch for result in results}))} on "
        f"{' and '.join(sorted({result.processor for result in results}))}, "
        f"{count(max(result.core_count for result in results), 'core')}.",
        "",
        FIRST_LOOKS,
        "",
        *((FIRST_LOOK_ON_GPU, "") if any(script.is_on_gpu for script in scripts) else ()),
    )


def _totals(groups: dict[str, list[ZooScript]]) -> Iterator[str]:
    yield from table(
        (
            "",
            "right first:",
            "in the first three:",
            "with a false alarm:",
            "faults named:",
            "estimates contained:",
            "within the jitter:",
            "median width:",
            "median slowdown:",
            "largest:",
        ),
        (_total_row(title, group) for title, group in groups.items() if group),
    )


def _total_row(title: str, group: Sequence[ZooScript]) -> tuple[str, ...]:
    pairs = [(script, fault) for script in group for fault in script.faults]
    answers = [script.holds(fault) for script, fault in pairs]
    estimated = [answer for answer in answers if answer not in NO_ESTIMATE]
    widths = [span.width for script, fault in pairs if (span := script.estimate(fault))]
    slowdowns = [script.stored.slowdown for script in group if script.stored.slowdown]
    return (
        f"{title} ({len(group)})",
        part(sum(script.is_first for script in group), len(group)),
        part(sum(script.is_in_first_three for script in group), len(group)),
        part(sum(bool(script.false_alarms) for script in group), len(group)),
        part(sum(script.position(fault) is not None for script, fault in pairs), len(pairs)),
        part(estimated.count("yes"), len(estimated)),
        str(estimated.count("within noise")),
        _factor(statistics.median(widths)) if widths else "–",
        _factor(statistics.median(slowdowns)) if slowdowns else "–",
        _factor(max(slowdowns)) if slowdowns else "–",
    )


def _factor(ratio: float) -> str:
    return "–" if ratio == float("inf") else f"{ratio:.2f}"


def _script_row(script: ZooScript) -> tuple[str, ...]:
    stored = script.stored
    first = next((finding.rule for finding in stored.findings if not finding.is_symptom), None)
    return (
        f"`{script.name}`",
        duration(stored.result.before_ms * MS),
        _factor(stored.slowdown) if stored.slowdown else "–",
        f"`{first}`" if first else "none",
        "yes" if script.is_first else "**no**",
        names(script.false_alarms) or "–",
    )


def _fault_row(script: ZooScript, fault: str) -> tuple[str, ...]:
    result, estimate = script.stored.result, script.estimate(fault)
    saving, error = result.saving_ms(fault), result.error_ms(fault)
    answer: Holds = script.holds(fault)
    return (
        result.faults[fault],
        f"`{script.name}`",
        f"{_ms(saving)} ± {_ms(error)}" if math.isfinite(error) else _ms(saving),
        str(script.position(fault) or "–"),
        _range(estimate) if estimate else "none",
        ANSWERS[answer],
    )


def _ms(value: float) -> str:
    return f"-{duration(-value * MS)}" if value < 0 else duration(value * MS)


def _range(span: Span) -> str:
    return f"{_ms(span.low) if span.low else '0'} to {_ms(span.high)}"
