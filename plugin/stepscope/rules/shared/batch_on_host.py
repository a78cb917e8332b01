"""What a small batch costs where no device computes: calls of operators, as many for each step."""

from collections.abc import Iterator

from stepscope.analyses.core.batch_size import BatchSize
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.host.short_operator_runs import ShortOperatorRuns
from stepscope.base.calibration import LARGER_BATCH_ON_CPU
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Evidence, Fix, Link
from stepscope.base.formatting import duration, share
from stepscope.model.intervals import duration_ns
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding
from stepscope.rules.shared import facts, phrases

COMPARE = "Record once with a larger batch, and hold the two together with `stepscope compare`"
OPERATORS = Link(view="operators")


def insist_on_samples(batch: BatchSize) -> None:
    """Insist that the size counts samples, in every step as many.

    Raises:
        MissingDataError: it may count tokens, or differs from step to step.
    """
    if not batch.is_certain:
        msg = (
            f"most of the time goes to short operators, but the {batch.size} rows "
            f"({batch.source_text}) may be no samples: whether the batch is small is not known"
        )
        raise MissingDataError(msg, COMPARE)


def finding(trace: Trace, batch: BatchSize, turns: ShortOperatorRuns, below_ns: int) -> Finding:
    """Return what a larger batch could win of the time in short operators."""
    return Finding(
        severity="warning" if is_training(trace) else "info",
        confidence="medium",
        message=f"The batch is {batch.size} ({batch.source_text}); "
        f"{phrases.time(trace, duration_ns(turns.times))} ({share(turns.share)}) goes to operators "
        f"of less than {duration(below_ns)} and to what is between them. A larger batch calls no "
        "more of them.",
        evidence=tuple(_evidence(trace, batch, turns)),
        claims=(
            Claim(
                turns.times,
                LARGER_BATCH_ON_CPU,
                f"The loop's thread in operators of less than {duration(below_ns)}, and between "
                "them. A larger batch saves it for the same number of samples: a step takes "
                "longer, a sample less.",
            ),
        ),
        fix=_fix(batch),
        subject=batch.operator,
    )


def told(batch: BatchSize, otherwise: Link) -> Iterator[Evidence]:
    """Yield the size and what tells it, which links there; where nothing does, elsewhere."""
    link = otherwise
    if batch.operator:
        link = Link(view="operators", search=batch.operator, group="shape")
    yield facts.count("Batch size", batch.size, link)
    if batch.operator:
        yield facts.code("Read from", f"{batch.operator} {batch.dims}", link)


def _evidence(trace: Trace, batch: BatchSize, turns: ShortOperatorRuns) -> Iterator[Evidence]:
    within = window(trace)
    yield from told(batch, OPERATORS)
    yield facts.fraction("Time in short operators and between them", turns.share)
    yield facts.count(
        f"Short operators {phrases.per_step(trace)}", within.per_step(turns.operators), OPERATORS
    )


def _fix(batch: BatchSize) -> Fix:
    return Fix(
        "Give each step more samples; its calls then cost the same for more work.",
        f"loader = DataLoader(dataset, batch_size={4 * batch.size})  # was {batch.size}",
        verify="Samples a second rise; the step gets longer by less than the batch grew.",
        caveats=(
            "A larger batch changes training: scale the learning rate, and watch convergence.",
            "Gradient accumulation does not help: it calls as many operators.",
            "In serving, a small batch may be what keeps latency low.",
            "Only a recording with the larger batch tells how much is won.",
        ),
    )
