"""Scores of all classes are computed for positions that the loss ignores."""

from stepscope.analyses.core import event_references, frame_times
from stepscope.analyses.operators.noted_calls import noted_rows
from stepscope.analyses.settings.tensor_values import NotedTargets
from stepscope.base.calibration import SCORES_LEFT_OUT, part_of
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases
from stepscope.rules.shared.noted_values import require_values

LEAST_REST = 0.01


class Options(Thresholds):
    """Thresholds of the targets and of the time of their scores."""

    least_ignored: float = option(
        0.5,
        "Fraction of the targets without padding that the loss ignores.",
        origin="ours: half of the work",
    )
    least_share: float = option(
        0.05, "Fraction of the window in operators on the scores.", origin="ours: a warning's"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report losses of which most targets are ignored, by the time of the scores."""
    values = require_values(trace)
    padded = max((ids.padded / ids.elements for ids in values.ids), default=0.0)
    targets = max(
        (t for t in values.targets if _ignored_share(t, padded) >= options.least_ignored),
        key=lambda noted: noted.classes * noted.ignored,
        default=None,
    )
    if targets is None:
        return
    rows = noted_rows(trace, targets.calls)
    times = frame_times.times(trace.host_calls, rows)
    time_ns = intervals.duration_ns(times)
    if not time_ns or phrases.fraction_of_window(trace, time_ns) < options.least_share:
        return
    fraction = targets.ignored / targets.targets - padded
    yield Finding(
        confidence="high",
        message=f"The loss in {targets.line} ignores {share(fraction)} of its targets"
        f"{' besides padding' if padded else ''}, yet scores "
        f"of {targets.classes:,} classes are computed for all of them: operators on these scores "
        f"take {phrases.time_and_fraction(trace, time_ns)}.",
        evidence=(
            facts.fraction("Targets that the loss ignores", fraction),
            facts.count("Classes", targets.classes),
            facts.duration("Time in operators on the scores in total", time_ns),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Operators on the scores"),),
        events=call_costs.longest(trace, rows),
        locations=event_references.source_lines((targets.line,)),
        claims=(
            Claim(
                times,
                part_of(SCORES_LEFT_OUT, fraction),
                "The fraction of ignored targets, of the operators on all scores; seven tenths of "
                "it at least.",
            ),
        ),
        subject=targets.line,
    )


def _ignored_share(targets: NotedTargets, padded: float) -> float:
    """Return the fraction of ignored targets among those that are no padding."""
    return (targets.ignored / targets.targets - padded) / max(1 - padded, LEAST_REST)


RULE = Rule(
    id="ignored-targets",
    title="Scores are computed for positions that the loss ignores",
    passed="No loss ignores most of the positions whose scores are computed",
    category="operators",
    why="Masked language models, and finetuning on answers alone, use the scores of few positions. "
    "The last layer multiplies each position by all classes, and softmax, loss and backward pass "
    "go through all of these numbers.",
    detects="Targets of a negative log-likelihood or cross entropy that equal `ignore_index`, as "
    "stepscope's recorder counted them in two unrecorded steps (`stepscope record`): from "
    "`least_ignored` of them on, where operators on the scores take `least_share` of the window.",
    silent=(
        "Losses that are masked afterwards, by a product or an index.",
        "Targets of padding, as far as token ids show it: padded-batches reports that.",
    ),
    saving="The fraction of ignored targets, of the time of operators on all scores; seven tenths "
    "of it at least.",
    fix=Fix(
        "Select the positions before the last layer.",
        "is_used = labels != -100\n"
        "logits = head(hidden[is_used])    # not head(hidden)\n"
        "loss = F.cross_entropy(logits, labels[is_used])",
        verify="Record again: the loss ignores few of its targets.",
        caveats=(
            "The number of positions changes from step to step: torch.compile needs "
            "dynamic=True, or the positions padded to a fixed number.",
        ),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    links=("generated/torch.nn.CrossEntropyLoss.html",),
    origin="ours: masked language models that score all positions",
    culprit="scoring positions that the loss ignores",
)
