"""`stepscope whatif`: simulate a trace or a run with a faster host, device, rank or network."""

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from stepscope.cli import completion
from stepscope.cli.advice_options import RuleOptions, with_configuration
from stepscope.cli.file_reading import Effort, with_effort, with_summaries
from stepscope.cli.one_trace import one_at, run_task
from stepscope.cli.options import NumberRange
from stepscope.cli.output import Printing, width, with_printing
from stepscope.cli.selection import Selection, with_selection
from stepscope.cli.whatif_ranks import (
    RankOptions,
    RunReading,
    has_ranks,
    with_rank_options,
    write_run,
)

if TYPE_CHECKING:
    from stepscope.replay.what_if import Prediction

FACTOR = NumberRange(min=0, max=100)
MOST_CORES = 4096


@click.command(
    short_help="Simulate a trace with a faster host, device or kernel, or a run of ranks."
)
@click.argument("path", shell_complete=completion.files)
@click.option(
    "--fix",
    "fixes",
    shell_complete=completion.rules,
    multiple=True,
    metavar="RULES",
    help="Fix the findings of these rules, separated by commas. Can be repeated.",
)
@click.option(
    "--host",
    type=FACTOR,
    default=1.0,
    metavar="FACTOR",
    help="Multiply the host's time: 0.7 for a host that is 30 % faster, as without a profiler.",
)
@click.option(
    "--device", type=FACTOR, default=1.0, metavar="FACTOR", help="Multiply all device events."
)
@click.option(
    "--scale",
    "scales",
    multiple=True,
    metavar="KIND:PATTERN=FACTOR",
    help="Multiply the time of kernels, or the host's time in operators, by a glob pattern of "
    "their names. Can be repeated.",
)
@click.option("--no-waits", is_flag=True, help="Let no call wait for the device.")
@click.option(
    "--workers",
    "worker_count",
    type=click.IntRange(min=1, max=MOST_CORES),
    metavar="COUNT",
    help="Load batches in so many worker processes.",
)
@click.option(
    "--cores",
    type=click.IntRange(min=1, max=MOST_CORES),
    metavar="COUNT",
    help="Cores for the loop and its workers.  [default: as recorded; with a device, else one for "
    "each worker and one for the loop]",
)
@click.option(
    "--trace",
    "trace_output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write recorded and simulated events as a Chrome trace, for Perfetto; compressed if the "
    "name ends in .gz.",
)
@with_rank_options
@with_printing("JSON has times in nanoseconds.")
@with_selection
@with_configuration
@with_summaries
@with_effort
def whatif(  # noqa: PLR0913 (one parameter per option)
    *,
    path: str,
    fixes: tuple[str, ...],
    host: float,
    device: float,
    scales: tuple[str, ...],
    no_waits: bool,
    worker_count: int | None,
    cores: int | None,
    trace_output: str | None,
    ranks: RankOptions,
    printing: Printing,
    selection: Selection,
    rule_options: RuleOptions,
    effort: Effort,
) -> None:
    """Simulate a trace's steps after changes, and print what limits them then.

    PATH is a trace file, or a folder with one; for options of a run, the folder of its ranks.

    \b
    stepscope whatif log/ --fix item-sync,tiny-kernels     # no such findings
    stepscope whatif log/ --scale 'kernels:*gemm*=0.5'     # do GEMMs matter?
    stepscope whatif log/ --host 0.7 --device 0.5          # another machine
    stepscope whatif log/ --scale 'operators:aten::to=0'   # no such host time
    stepscope whatif log/ --no-waits                       # no .item()
    stepscope whatif log/ --workers 4 --cores 8            # worker processes
    stepscope whatif log/ --device 0.5 --trace half.json.gz  # for Perfetto
    stepscope whatif run/ --without-rank 17 --network 2    # no straggler
    stepscope whatif run/ --fix straggler-rank             # no such finding

    The trace is replayed as a graph: each launch, kernel and copy begins as soon as everything that
    it waited for in the recording has ended. Without changes, the replay gives the recorded times.
    The kernels that run stay the same. In a run, the ranks' work between collectives is replayed:
    a collective ends when its last rank has come and its transfer is over.
    """
    from stepscope.readers.tasks import predict
    from stepscope.replay.what_if import WhatIf, parse_scale

    what_if = WhatIf(
        host=host,
        device=device,
        scales=tuple(map(parse_scale, scales)),
        is_unblocked=no_waits,
        workers=worker_count,
        cores=cores,
    )
    of_run, of_trace = _split(fixes)
    is_trace_changed = what_if != WhatIf() or bool(of_trace or trace_output)
    ranks = replace(ranks, run_rules=of_run)
    if ranks.is_given or (not is_trace_changed and has_ranks(path, selection)):
        _require_only_ranks(is_trace_changed=is_trace_changed)
        reading = RunReading(
            path=path, selection=selection, effort=effort, rule_options=rule_options
        )
        write_run(reading, ranks, printing)
        return
    file = one_at(path, selection)
    settings = rule_options.settings().for_run(file.run) if of_trace else None
    task = functools.partial(
        predict, what_if=what_if, fixes=of_trace, output=trace_output, settings=settings
    )
    printing.write(_rendered(run_task(file, task, effort), printing))


def _split(fixes: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rules over the run, and those of a trace."""
    rules = tuple(rule for text in fixes for rule in text.split(",") if rule)
    if not rules:
        return (), ()
    from stepscope.advice.run_fixes import is_of_run

    of_run = tuple(rule for rule in rules if is_of_run(rule))
    return of_run, tuple(rule for rule in rules if rule not in of_run)


def _require_only_ranks(*, is_trace_changed: bool) -> None:
    from stepscope.base.errors import UsageError

    if is_trace_changed:
        msg = (
            "--ranks-alike, --without-rank, --network, --stage and fixes of findings over a run "
            "change a run, the other options a trace: give those of one kind"
        )
        raise UsageError(msg)


def _rendered(prediction: "Prediction", printing: Printing) -> str:
    from stepscope.render import prediction as rendered

    match printing.form:
        case "json":
            return rendered.json(prediction)
        case "markdown":
            return rendered.markdown(prediction)
    return rendered.text(prediction, width=width(), is_coloured=printing.is_coloured)
