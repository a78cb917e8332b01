"""`stepscope cut`: write a part of a trace as a separate trace."""

import functools
from typing import TYPE_CHECKING

import click

from stepscope.cli import completion
from stepscope.cli.file_reading import Effort, with_local_effort
from stepscope.cli.one_trace import one_at, run_task
from stepscope.cli.output import write_message
from stepscope.cli.selection import Selection, with_selection

if TYPE_CHECKING:
    from stepscope.render.drawn_events import Drawing
    from stepscope.render.trace_excerpt import Excerpt

NS_PER_MS = 1_000_000
LONGEST_MS = 1e12


@click.command(
    short_help="Write a part of a trace, or draw counters and the critical path into it."
)
@click.argument("path", shell_complete=completion.files)
@click.option("--start", "start_ms", type=float, help="Start, in ms from the first event.")
@click.option("--end", "end_ms", type=float, help="End, in ms from the first event.")
@click.option("--steps", metavar="N[-M]", help="Steps N to M, by their ProfilerStep numbers.")
@click.option("--as-recorded", is_flag=True, help="Leave overlapping slices as they are.")
@click.option(
    "--with",
    "drawings",
    type=click.Choice(["counters", "critical-path"]),
    multiple=True,
    help="Draw this in; repeatable. Without a part, the whole trace is written.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    help="The file to write; compressed if it ends in .gz.",
)
@with_selection
@with_local_effort
def cut(  # noqa: PLR0913 (one parameter per option)
    *,
    path: str,
    start_ms: float | None,
    end_ms: float | None,
    steps: str | None,
    as_recorded: bool,
    drawings: "tuple[Drawing, ...]",
    output: str,
    selection: Selection,
    effort: Effort,
) -> None:
    """Write a part of a trace as a Chrome trace, for any viewer, with counters drawn in.

    PATH is a trace file, or a folder with one.

    \b
    stepscope cut trace.json.gz --steps 3-5 -o steps.json.gz
    stepscope cut trace.json.gz --start 1200 --end 1350.5 -o gap.json.gz
    stepscope cut trace.json.gz --with counters --with critical-path -o annotated.json.gz

    Events keep all their fields and their full length, also at the borders. Device work belongs to
    the part if the host launches it there, whenever it runs. Where slices of a track overlap, the
    shorter overlap is cut off, so that Perfetto draws them; their number is printed, and written
    to the file as stepscopeCut.

    --with counters draws the queue length of each stream and the bandwidth of copies and memory
    sets. --with critical-path draws a track with the activity that each step waits for, and arrows
    where it goes from one track to another. Their category is "stepscope". Without a part, all
    other events of the trace stay as they are.
    """
    from stepscope.base.step_range import parse_steps
    from stepscope.readers.tasks import cut as task
    from stepscope.render.trace_excerpt import Request

    is_whole = bool(drawings) and not steps and start_ms is None and end_ms is None
    request = Request(
        path=output,
        time_ns=None if steps or is_whole else _time_ns(start_ms, end_ms),
        steps=parse_steps(steps, "--steps") if steps else None,
        is_repaired=not as_recorded,
        drawings=drawings,
    )
    if steps and (start_ms is not None or end_ms is not None):
        msg = "give --steps, or --start and --end"
        raise click.UsageError(msg)
    excerpt = run_task(one_at(path, selection), functools.partial(task, request=request), effort)
    write_message(_message(excerpt, output))


def _time_ns(start_ms: float | None, end_ms: float | None) -> tuple[int, int]:
    if start_ms is None or end_ms is None:
        msg = "give --start and --end, or --steps, or --with for the whole trace"
        raise click.UsageError(msg)
    if not -LONGEST_MS < start_ms < end_ms < LONGEST_MS:
        msg = "--end must come after --start"
        raise click.UsageError(msg)
    return round(start_ms * NS_PER_MS), round(end_ms * NS_PER_MS)


def _message(excerpt: "Excerpt", output: str) -> str:
    events = excerpt.written
    time = f"{excerpt.start_ns / NS_PER_MS:.3f} to {excerpt.end_ns / NS_PER_MS:.3f} ms"
    text = f"{events.event_count:,} of {excerpt.of_count:,} events, {time}, are in {output}"
    if events.shortened_count == 1:
        text += "; 1 slice overlapped others and was shortened"
    elif events.shortened_count:
        text += f"; {events.shortened_count:,} slices overlapped others and were shortened"
    if events.drawn_count:
        text += f"; {events.drawn_count:,} events were added"
    if events.lost_count:
        text += f"; {events.lost_count:,} were too damaged to be written"
    return text
