"""`stepscope stacks`: where host or device time went, as a flame graph's file."""

import functools
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.file_reading import Effort, with_own_effort
from stepscope.cli.one_trace import done, one_at
from stepscope.cli.selection import Selection, with_selection

if TYPE_CHECKING:
    from stepscope.analyses.host.call_stacks import Metric
    from stepscope.render.stack_file import Form

TO_STDOUT = "-"


@click.command(short_help="Write the stacks of a trace for flame graphs.")
@click.argument("path")
@click.option(
    "--metric",
    type=click.Choice(["self-cpu", "self-device"]),
    default="self-cpu",
    show_default=True,
    help="The host's time, or the device's by what launched it.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["collapsed", "speedscope"]),
    default="collapsed",
    show_default=True,
    help="Collapsed is what torch's export_stacks writes.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default=TO_STDOUT,
    help="Compressed where it ends in .gz.  [default: standard output]",
)
@with_selection
@with_own_effort
def stacks(  # noqa: PLR0913 (one parameter an option)
    *,
    path: str,
    metric: "Metric",
    form: "Form",
    output: str,
    selection: Selection,
    effort: Effort,
) -> None:
    """Write where a recording's time went, by the functions that led there.

    PATH is a trace file, or a folder with one. Record it with profile(with_stack=True).

    \b
    stepscope stacks trace.json.gz -o stacks.txt          # for flamegraph.pl
    stepscope stacks trace.json.gz --format speedscope -o stacks.speedscope.json
    stepscope stacks log/ --worker node1_4711 --metric self-device

    Collapsed stacks are Python functions, a line a call, in whole microseconds of the call's own
    time. In speedscope's file operators and runtime calls are part of the stack, in nanoseconds.
    """
    from stepscope.readers.tasks import stack
    from stepscope.render.stack_file import Request

    file = one_at(path, selection)
    with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
        target = str(Path(folder, "stacks")) if output == TO_STDOUT else output
        request = Request(metric=metric, form=form, path=target)
        done(file, functools.partial(stack, request=request), effort)
        if output == TO_STDOUT:
            with Path(target).open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
