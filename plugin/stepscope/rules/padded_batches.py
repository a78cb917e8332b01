"""Much of the batches is padding."""

from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.analyses.core import event_references
from stepscope.analyses.host.phase_names import BACKWARD, FORWARD
from stepscope.analyses.host.step_phases import step_phases
from stepscope.analyses.settings.tensor_values import TensorValues
from stepscope.base.calibration import SHORTER_BATCHES, part_of
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts
from stepscope.rules.shared.noted_values import claims, require_values

IN_ROWS = 0.8
"""Of a signal's zeros, the part in rows of nothing else, from which it is padding."""


class Options(Thresholds):
    """Fractions of a batch's positions."""

    least_padding: float = option(
        0.4,
        "Padding in all.",
        origin="ours: random batches of texts padded to the longest have some 20 to 35 %",
    )
    least_removable: float = option(
        0.15,
        "Padding in each sample, which padding to the longest leaves out.",
        origin="ours: nothing needs it",
    )


@dataclass(frozen=True, kw_only=True)
class Padding:
    """Padding of the largest padded input."""

    line: str
    share: float
    removable_share: float = 0.0
    """Fraction of the positions that are padding in each sample; 0: unknown."""


def check(trace: Trace, options: Options) -> Results:
    """Report token ids and signals of which much is padding."""
    values = require_values(trace)
    padding = max(_paddings(values), key=lambda padding: padding.share, default=None)
    if padding is None:
        return
    is_removable = padding.removable_share >= options.least_removable
    if not is_removable and padding.share < options.least_padding:
        return
    phases = step_phases(trace)
    times = intervals.merged(phases.times(FORWARD), phases.times(BACKWARD))
    yield Finding(
        confidence="high",
        message=f"{share(padding.share)} of the positions in the batches are padding, by the "
        f"inputs of {padding.line} in two steps{_removable(padding)}.",
        evidence=(
            facts.fraction("Positions that are padding", padding.share),
            *(
                (facts.fraction("Padding in each sample of the batch", padding.removable_share),)
                if padding.removable_share
                else ()
            ),
            facts.duration("Forward and backward pass in total", intervals.duration_ns(times)),
        ),
        locations=event_references.source_lines((padding.line,)),
        claims=claims(
            times,
            part_of(SHORTER_BATCHES, padding.removable_share if is_removable else padding.share),
            f"The fraction of padding{' in each sample' if is_removable else ''}, of the "
            "forward and backward pass; six tenths at least.",
        ),
        fix=LONGEST if is_removable else SORTED,
        subject=padding.line,
    )


def _paddings(values: TensorValues) -> Iterable[Padding]:
    for ids in values.ids:
        yield Padding(
            line=ids.line,
            share=ids.padded / ids.elements,
            removable_share=ids.removable / ids.elements,
        )
    for operand in values.sparse:
        if operand.zero_row_fraction >= IN_ROWS * operand.zero_fraction > 0:
            yield Padding(line=operand.line, share=operand.zero_row_fraction)


def _removable(padding: Padding) -> str:
    if not padding.removable_share:
        return ""
    return f"; {share(padding.removable_share)} are in columns that are padding in each sample"


VERIFY = "Record again: less of the positions is padding."
SORTED = Fix(
    "Put samples of similar lengths into one batch.",
    "order = sorted(range(len(dataset)), key=lambda i: len(dataset[i]))    # by length\n"
    "batches = [order[i : i + 32] for i in range(0, len(order), 32)]\n"
    "random.shuffle(batches)\n"
    "loader = DataLoader(dataset, batch_sampler=batches, collate_fn=pad_to_longest)\n"
    "# Trainer: TrainingArguments(group_by_length=True)",
    verify=VERIFY,
    caveats=("Batches then are less random: shuffle their order, and sort within large groups.",),
)
LONGEST = Fix(
    "Pad to the longest sample of the batch, and batch samples of similar lengths.",
    "batch = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)    # in collate_fn\n"
    'batch = tokenizer(texts, padding="longest", truncation=True)    # not "max_length"',
    verify=VERIFY,
    caveats=(
        "With torch.compile, lengths that change compile anew: round them up to a few sizes.",
    ),
)

RULE = Rule(
    id="padded-batches",
    title="Much of the batches is padding",
    passed="Little of the batches is padding",
    category="input pipeline",
    why="A model computes padding like data, and masks it afterwards. Samples padded to a fixed "
    "length, or short ones beside a long one, multiply the work of forward and backward.",
    detects="Token ids of an embedding (samples, positions) that end or begin with the same "
    "number, and signals with positions of zeros alone, as stepscope's recorder counted them in "
    "two unrecorded steps (`stepscope record`); reported from `least_padding` of the positions on, "
    "or from `least_removable` where all samples of a batch have it.",
    silent=(
        "Ids of fewer than 8 kinds, and ids that are the same in each sample (positions, types).",
        "Results of ReLU, dropout and pooling.",
        "Padding that is no zero, in inputs that are no ids.",
    ),
    saving="The fraction of padding (of the padding that all samples have, if that is reported), "
    "of the time of forward and backward; six tenths of it at least.",
    fix=SORTED,
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="program",
    links=("generated/torch.nn.utils.rnn.pad_sequence.html",),
    origin="ours: texts padded to the longest that the model takes",
    culprit="padding",
)
