"""`stepscope stacks`: write call stacks with host or device time, for flame graphs."""

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli import completion
from stepscope.cli.file_reading import Effort, with_local_effort
from stepscope.cli.one_trace import one_at, run_task
from stepscope.cli.output import print_content
from stepscope.cli.selection import Selection, with_selection

if TYPE_CHECKING:
    from stepscope.analyses.host.call_stacks import Metric
    from stepscope.render.stack_file import Form

TO_STDOUT = "-"


@click.command(short_help="Write the call stacks of a trace for flame graphs.")
@click.argument("path", shell_complete=completion.files)
@click.option(
    "--metric",
    type=click.Choice(["self-cpu", "self-device"]),
    default="self-cpu",
    show_default=True,
    help="Weigh stacks by host time, or by the device time of the work that they launch.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["collapsed", "speedscope"]),
    default="collapsed",
    show_default=True,
    help="`collapsed` is the format of torch's export_stacks.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default=TO_STDOUT,
    help="Write to this file; compressed if it ends in .gz.  [default: standard output]",
)
@with_selection
@with_local_effort
def stacks(  # noqa: PLR0913 (one parameter per option)
    *,
    path: str,
    metric: "Metric",
    form: "Form",
    output: str,
    selection: Selection,
    effort: Effort,
) -> None:
    """Write the call stacks of a trace with the time of each.

    PATH is a trace file, or a folder with one. Record it with profile(with_stack=True).

    \b
    stepscope stacks trace.json.gz -o stacks.txt          # for flamegraph.pl
    stepscope stacks trace.json.gz --format speedscope -o stacks.speedscope.json
    stepscope stacks log/ --worker node1_4711 --metric self-device

    Collapsed stacks contain Python functions, one line per call, with the call's self time in whole
    microseconds. Speedscope files also contain operators and runtime calls, in nanoseconds.
    """
    from stepscope.readers.tasks import stack
    from stepscope.render.stack_file import Request

    file = one_at(path, selection)
    with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
        target = str(Path(folder, "stacks")) if output == TO_STDOUT else output
        request = Request(metric=metric, form=form, path=target)
        run_task(file, partial(stack, request=request), effort)
        if output == TO_STDOUT:
            with Path(target).open("rb") as written:
                print_content(partial(shutil.copyfileobj, written))
