"""Generation computes the whole sequence again for each token."""

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.growing_sequences import growing_sequences
from stepscope.base.calibration import CACHED_KEYS, part_of
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases


class Options(Thresholds):
    """Thresholds of the calls, and of their time in positions that were computed before."""

    least_calls: int = option(
        6, "Calls on growing sequences.", origin="ours: their times give the part that grows"
    )
    least_share: float = option(
        0.02,
        "Fraction of the window in positions of before.",
        origin="ours: below it, launching operators takes the time",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report calls of a model on sequences that grow by one position each."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    requirements.shapes(trace)
    grown, span = growing_sequences(trace), window(trace)
    times = intervals.union(grown.start_ns, grown.end_ns)
    times = intervals.clip(times, span.start_ns, span.end_ns)
    time_ns = intervals.duration_ns(times)
    repeated_ns = time_ns * grown.repeated_share
    if (
        len(grown.rows) < options.least_calls
        or not time_ns
        or phrases.fraction_of_window(trace, repeated_ns) < options.least_share
    ):
        return
    yield Finding(
        confidence="medium",
        message=f"{count(len(grown.rows), 'call')} of a model in "
        f"{count(grown.generation_count, 'generation')} take sequences that grow by one position, "
        f"up to {int(grown.length.max()):,}: {share(grown.repeated_share)} of their time is in "
        f"positions that the call before had computed, "
        f"{phrases.time_and_fraction(trace, repeated_ns)}.",
        evidence=(
            facts.count("Calls in total", len(grown.rows)),
            facts.count("Longest sequence", int(grown.length.max())),
            facts.duration("Time in them in total", time_ns),
            facts.fraction("Of it in positions of before", grown.repeated_share),
        ),
        events=call_costs.longest(trace, grown.rows),
        locations=call_costs.lines(trace, grown.rows),
        claims=(
            Claim(
                times,
                part_of(CACHED_KEYS, grown.repeated_share),
                "The part of the calls' time that grows with the positions of before; six tenths "
                "of it at least, since attention still reads their keys and values.",
            ),
        ),
    )


RULE = Rule(
    id="no-kv-cache",
    title="Generation computes the whole sequence again for each token",
    passed="No generation computes its sequence again for each token",
    category="inference",
    why="Keys and values of earlier positions do not change. With a cache of them, each new token "
    "takes the work of one position; without, of all, and a text of twice the length takes four "
    "times as long.",
    detects="Successive calls of aten::embedding on a thread whose token ids grow by exactly one "
    "position, four or more in a row. The time that grows with the length (median slope of the "
    "calls' times; where the longest is less than 1.5 times the shortest, the operators' time "
    "beyond 10 µs each) counts as computed before; reported from `least_share` of the window on.",
    silent=(
        "Calls on one new token each, as with a cache.",
        "Sequences that grow by several positions.",
        "Models that do not begin with an embedding.",
    ),
    saving="The part of the calls' time that grows with the positions of before; six tenths of it "
    "at least.",
    fix=Fix(
        "Keep keys and values of earlier positions.",
        "output = model(token, past_key_values=cache, use_cache=True)    # of transformers\n"
        "cache = output.past_key_values\n"
        "cache_keys[:, :, position] = new_keys    # in a layer of yours; values alike\n"
        "keys = cache_keys[:, :, : position + 1]",
        verify="In the next trace each call after the first takes one position.",
        caveats=("The cache takes memory: two tensors per layer for each position.",),
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls"}),
    priority="program",
    links=("generated/torch.nn.functional.scaled_dot_product_attention.html",),
    origin="ours: a completion server that called its model on the whole text",
    culprit="generating without a cache",
)
