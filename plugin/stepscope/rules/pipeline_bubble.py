"""A pipeline's stage waits for its neighbours for longer than its schedule has to."""

from collections.abc import Iterator

from stepscope.analyses.communication.pipeline_stages import Pipeline, pipeline
from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.base.calibration import UP_TO_ALL, part_of
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence
from stepscope.base.formatting import duration, share, significant
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases


class Options(Thresholds):
    """Threshold of waiting beyond the schedule."""

    least_excess_share: float = option(
        0.05,
        "Fraction of the window in waiting for neighbours beyond the schedule's bubble.",
        origin="pytscope's pipeline rule reports from an excess of 5 %",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report waiting in sends and receives beyond the bubble of the stages and micro-batches."""
    requirements.main_device(trace)
    stages = pipeline(trace)
    if stages is None:
        msg = "no stage of a pipeline was recorded"
        raise NotApplicableError(msg)
    span = window(trace)
    waited = intervals.duration_ns(stages.waiting) / span.reference_ns
    excess = waited - stages.bubble_share
    if excess < options.least_excess_share:
        return
    waited_ns = span.per_step(intervals.duration_ns(stages.waiting))
    yield Finding(
        confidence="medium",
        message=f"The stage waits for its neighbours {duration(waited_ns)} "
        f"{phrases.per_step(trace)} ({share(waited)}); with {stages.stage_count} stages and "
        f"{significant(stages.part_count)} micro-batches {share(stages.bubble_share)} are to be "
        "expected.",
        evidence=tuple(_evidence(stages, waited, excess)),
        claims=(
            Claim(
                stages.waiting,
                part_of(UP_TO_ALL, excess / waited),
                "The waiting in sends and receives while nothing computes; of it the part beyond "
                "the schedule's own bubble, and nothing at least.",
                is_device_work=bool(len(trace.device_events)),
            ),
        ),
        subject=f"{stages.stage_count} stages",
    )


def _evidence(stages: Pipeline, waited: float, excess: float) -> Iterator[Evidence]:
    yield facts.fraction("Waiting for neighbours", waited, "overview")
    yield facts.count("Stages", stages.stage_count)
    yield facts.count("Micro-batches per step", stages.part_count)
    yield facts.fraction("Bubble of that schedule", stages.bubble_share)
    yield facts.fraction("Beyond it", excess)


RULE = Rule(
    id="pipeline-bubble",
    title="A pipeline's stage waits for its neighbours longer than its schedule requires",
    passed="The pipeline's bubbles are as short as its schedule allows",
    category="communication",
    why="A stage can compute only what its neighbours have sent. At the beginning and end of a "
    "step some waiting is inherent; more of it means stages of unequal work, or slow transfers.",
    detects="Sends and receives between stages while nothing computes. With p stages and m "
    "micro-batches per step, (p - 1) / (m + p - 1) of it is the schedule's own bubble (GPipe, "
    "1F1B). "
    "It reports from `least_excess_share` beyond that.",
    silent=("Interleaved and zero-bubble schedules wait less than that, and are never blamed.",),
    saving="At most the waiting beyond the schedule's bubble; nothing at least.",
    fix=Fix(
        "Give the stages equal work, and split the batch into more micro-batches.",
        "from torch.distributed.pipelining import ScheduleInterleaved1F1B\n"
        "schedule = ScheduleInterleaved1F1B(stages, n_microbatches=4 * len(stages))",
        verify="Waiting for neighbours is near the schedule's bubble.",
        caveats=("More micro-batches make each smaller: kernels may become too small.",),
    ),
    effort="day",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "steps"}),
    priority="communication",
    after=("fsdp-no-prefetch",),
    life_cycle="preview",
    culprit="waiting for other stages",
    links=("distributed.pipelining.html",),
    origin="Huang et al., GPipe (2019); Narayanan et al., PipeDream-2BW and Megatron-LM (2021)",
)
