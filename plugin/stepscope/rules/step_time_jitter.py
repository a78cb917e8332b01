"""A few steps take much longer than the others."""

import numpy as np
import pandas as pd

from stepscope.analyses.steps.step_breakdown import CATEGORIES, step_breakdown
from stepscope.analyses.steps.step_statistics import inputs_differ, steps_table
from stepscope.base.calibration import UP_TO_ALL
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import EvidenceTable, Link
from stepscope.base.formatting import count, duration, number_ranges, significant
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts

RECORD_MORE = "torch.profiler.schedule(wait=1, warmup=1, active=6)  # five steps or more"
ROWS_SHOWN = 10


class Options(Thresholds):
    """Thresholds of outlier steps."""

    least_steps: int = option(
        5,
        "Steps needed to know the usual duration.",
        origin="ours: the first and last are left out",
    )
    least_z: float = option(
        3.5,
        (
            "Modified z-score of a step's duration: its distance from the median in units of the "
            "usual distance."
        ),
        origin="Iglewicz and Hoaglin (1993); xprof uses the median absolute deviation too",
    )
    least_ratio: float = option(
        1.2,
        "The longest step over the median one.",
        origin="ours: where steps are very even, 3.5 deviations are microseconds",
    )
    least_odd_steps: int = option(
        2,
        "Outlier steps from which it is more than a hint.",
        origin="ours: a single event may be caused by another program, and not happen again",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report steps that are much longer than the median, and what takes longer in them."""
    steps = steps_table(trace)
    steady = steps[steps["is_steady"]]
    if len(steps) < options.least_steps:
        few = f"only {count(len(steps), 'step was', 'steps were')} recorded"
        msg = few if len(steps) else "no step was marked"
        raise MissingDataError(msg, RECORD_MORE)
    middle_ns = max(1.0, float(steady["duration_ns"].median()))
    odd = steady[steady["robust_z"] > options.least_z]
    if not len(odd) or float(odd["duration_ns"].max()) <= options.least_ratio * middle_ns:
        return
    ratio = float(odd["duration_ns"].max()) / middle_ns
    numbers = [int(number) for number in odd["number"]]
    which = f"Step {numbers[0]} takes" if len(numbers) == 1 else _several(numbers)
    text = f"{which} {significant(ratio)} times the median step of {duration(middle_ns)}"
    if inputs_differ(trace, numbers):
        yield RuledOut(message=f"{text}; their inputs have other shapes.", tables=(_table(odd),))
        return
    yield Finding(
        severity="info" if len(numbers) < options.least_odd_steps else None,
        confidence="medium",
        message=f"{text}. {_most(trace, numbers)}",
        evidence=(
            facts.count("Steps that stand out", len(numbers)),
            facts.count(
                "Longest over median step",
                ratio,
                Link(view="overview", step=int(odd["number"].iloc[0])),
            ),
        ),
        tables=(_table(odd),),
        claims=(
            Claim(
                _beyond(odd, middle_ns),
                UP_TO_ALL,
                "What those steps take beyond the median, nothing at least.",
            ),
        ),
    )


def _several(numbers: list[int]) -> str:
    return f"Steps {number_ranges(numbers)} take up to"


def _beyond(odd: pd.DataFrame, middle_ns: float) -> intervals.Intervals:
    start = odd["start_ns"].to_numpy()
    end = start + odd["duration_ns"].to_numpy()
    return intervals.union((start + round(middle_ns)).astype(np.int64), end)


def _most(trace: Trace, numbers: list[int]) -> str:
    """Name the part of the step that grows most in them."""
    steps = step_breakdown(trace)
    is_odd = np.isin(np.array(steps.numbers), numbers)
    more = steps.parts_ns[is_odd].mean(axis=0) - np.median(steps.parts_ns[~is_odd], axis=0)
    worst = int(more.argmax())
    label, meaning = CATEGORIES[steps.categories[worst]]
    return f"Most of it is {label} ({duration(float(more[worst]))} more): {meaning}"


def _table(odd: pd.DataFrame) -> EvidenceTable:
    ordered = odd.sort_values("duration_ns", ascending=False, kind="stable").head(ROWS_SHOWN)
    return facts.table(
        "Steps that stand out",
        {"Step": "count", "Duration": "ns", "Beyond the median": "ns"},
        (
            facts.row(
                int(row["number"]),
                int(row["duration_ns"]),
                float(row["from_median_ns"]),
                link=Link(view="overview", step=int(row["number"])),
            )
            for _, row in ordered.iterrows()
        ),
    )


RULE = Rule(
    id="step-time-jitter",
    title="Some steps take much longer than the others",
    passed="Steps take similar times",
    category="distributed balance",
    why="A step that is long now and then (a checkpoint, a garbage collection, a slow shard) costs "
    "every rank, and mean step times hide it.",
    detects="All steps except the first and the last, of `least_steps` or more. It reports where "
    "a step's modified z-score is above `least_z` and it is longer than `least_ratio` times the "
    "median. Fewer than `least_odd_steps` of them are a hint, whatever they cost.",
    silent=("Steps whose inputs have other shapes than the rest are expected to take longer.",),
    saving="At most the time of those steps beyond the median, as far as no other rule claims it.",
    fix=Fix(
        "Look at what the long steps do and the others do not.",
        verify="The longest step is less than 1.2 times the median one.",
        caveats=("What happens once in many steps may be missing from a short recording.",),
    ),
    effort="day",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority="symptom",
    is_symptom=True,
    culprit="what some steps take beyond the median",
    links=("profiler.html#torch.profiler.schedule",),
    origin="SageMaker Debugger's StepOutlier; xprof's median absolute deviation",
)
