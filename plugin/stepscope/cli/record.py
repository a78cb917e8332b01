"""`stepscope record`: record training or inference without changes of its code."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.cli import completion
from stepscope.cli.options import MOST_SECONDS, NumberRange
from stepscope.cli.output import write_message

if TYPE_CHECKING:
    from stepscope.recording.record_request import RecordRequest


@click.command(
    short_help="Run a script unchanged, and record some of its steps.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument(
    "command",
    metavar="-- COMMAND...",
    nargs=-1,
    shell_complete=completion.files,
)
@click.option(
    "--log-dir",
    metavar="DIR",
    help="Folder for the traces.  [default: log/record-<date>_<time>]",
)
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    metavar="N",
    help="Steps before the first trace.  [default: up to 50, or 2 s; earlier traces remain if the "
    "script ends before]",
)
@click.option(
    "--wait",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    metavar="N",
    help="Steps between two traces.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="Warm-up steps of the profiler before each trace.",
)
@click.option(
    "--active",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    metavar="N",
    help="Steps of a trace.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of traces.",
)
@click.option(
    "--steps-from",
    type=click.Choice(["auto", "optimizer", "dataloader", "none"]),
    default="auto",
    show_default=True,
    help="Event that ends a step.",
)
@click.option(
    "--seconds",
    type=NumberRange(min=0.1, max=MOST_SECONDS),
    default=5.0,
    show_default=True,
    metavar="S",
    help="Recording time of a script without steps.",
)
@click.option(
    "--shapes/--no-shapes",
    default=True,
    show_default=True,
    help="Record the shapes of operators' inputs.",
)
@click.option(
    "--with-stack/--no-stack",
    "stacks",
    default=False,
    show_default=True,
    help="Record Python calls, for source lines; slows the recorded steps down.",
)
@click.option(
    "--memory/--no-memory",
    default=False,
    show_default=True,
    help="Record each allocation of memory.",
)
@click.option(
    "--samples/--no-samples",
    default=True,
    show_default=True,
    help="Sample the source lines of the steps before a trace, every 10 ms (64-bit Linux).",
)
@click.option(
    "--values/--no-values",
    default=True,
    show_default=True,
    help="Read the values of tensors in two of these steps: padding, zeros, repeated results.",
)
@click.option("--stop", "is_stopping", is_flag=True, help="End the script after recording.")
@click.option(
    "--advise", "is_advised", is_flag=True, help="Print the advice after the script has ended."
)
@click.pass_context
def record(
    context: click.Context,
    /,
    *,
    command: tuple[str, ...],
    log_dir: str | None,
    is_advised: bool,
    **options: Any,  # noqa: ANN401 (fields of `RecordRequest`)
) -> None:
    """Run a command, and record some steps of each Python process that trains or infers.

    The script is not changed, and continues to its end without the profiler.

    \b
    stepscope record -- python train.py --epochs 3
    stepscope record --advise --stop -- python -m package.train   # soon
    stepscope record --repeat 3 --wait 500 -- python train.py     # three traces
    stepscope record --with-stack -- torchrun --nproc-per-node 2 train.py
    stepscope record --skip 200 --active 20 -- python train.py    # these steps

    A step ends after the step of an optimizer (of several, the one that steps least often), or,
    without an optimizer, when a DataLoader is asked for the next batch; with neither, a step is a
    call of a model. A script with none of these is recorded for some seconds. Each rank is a worker
    of one run.

    Progress is printed to standard error. The exit status is that of the command.
    """
    from stepscope.base import urls
    from stepscope.recording.launch import NOT_EXECUTABLE, NOT_FOUND, run
    from stepscope.recording.record_report import summary
    from stepscope.recording.record_request import RecordRequest, accounts_in

    if not command:
        msg = "give a command after --, such as `stepscope record -- python train.py`"
        raise click.UsageError(msg)
    if log_dir and urls.is_remote(log_dir):
        msg = "torch writes traces to a local disk: pass a local folder, and copy it afterwards"
        raise click.BadParameter(msg, param_hint="--log-dir")
    request = RecordRequest(log_dir=str(Path(log_dir or _new_folder()).resolve()), **options)
    with tempfile.TemporaryDirectory(
        prefix="stepscope-record-", ignore_cleanup_errors=True
    ) as folder:
        try:
            status = run(command, request, folder)
        except OSError as error:
            write_message(f"{command[0]}: {error.strerror}")
            is_there = not isinstance(error, FileNotFoundError)
            raise click.exceptions.Exit(NOT_EXECUTABLE if is_there else NOT_FOUND) from None
        accounts = accounts_in(folder)
    for line in summary(accounts, request, is_advised=is_advised):
        write_message(line)
    if is_advised and any(account.written for account in accounts):
        _advise(context, request)
    raise click.exceptions.Exit(status)


def _new_folder() -> str:
    import time

    return f"log/record-{time.strftime('%Y-%m-%d_%H-%M-%S')}"


def _advise(context: click.Context, request: "RecordRequest") -> None:
    """Print the advice on the traces; an error does not change the script's exit status."""
    from stepscope.cli.advise import advise

    try:
        with suppress(click.exceptions.Exit):
            context.invoke(advise, paths=(request.log_dir,))
    except Exception as error:
        if context.find_root().params.get("traceback"):
            raise
        write_message(f"no advice ({type(error).__name__}: {error})")
