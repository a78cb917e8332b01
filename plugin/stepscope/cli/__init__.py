"""The command line: one command a file, each importing what it needs when it is run."""

import io
import sys
from typing import IO, Any

import click

from stepscope._version import __version__
from stepscope.base.errors import StepscopeError
from stepscope.cli.advise import advise
from stepscope.cli.compare import compare
from stepscope.cli.cut import cut
from stepscope.cli.explain import explain
from stepscope.cli.export import export
from stepscope.cli.health import health
from stepscope.cli.memory import memory
from stepscope.cli.record import record
from stepscope.cli.rules import rules
from stepscope.cli.scalars import scalars
from stepscope.cli.schema import schema
from stepscope.cli.serve import serve
from stepscope.cli.stacks import stacks

COMMANDS = (
    record,
    advise,
    explain,
    compare,
    health,
    export,
    cut,
    stacks,
    memory,
    scalars,
    serve,
    rules,
    schema,
)
UNUSABLE = 2
"""The exit status where nothing could be done with what was given."""
FAILED = 3
"""A defect of stepscope: 1 is for commands that are asked to fail on what they find."""
INTERRUPTED = 130
"""Ctrl-C, as shells count it."""


class _Refusal(click.ClickException):
    """One clear line on standard error."""

    exit_code = UNUSABLE

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it."""
        click.echo(f"stepscope: {self.format_message()}", file=file or sys.stderr)


class _Failure(_Refusal):
    """The same for an error that nobody foresaw."""

    exit_code = FAILED


class _Commands(click.Group):
    """Turns every error into one line; `--traceback` lets it through."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except StepscopeError as error:
            raise _Refusal(str(error)) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except OSError as error:
            message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise _Refusal(message) from error
        except Exception as error:
            if ctx.params["traceback"]:
                raise
            message = (
                f"failed ({type(error).__name__}: {error}). "
                "This is a bug: run `stepscope --traceback …` and report what it shows"
            )
            raise _Failure(message) from error


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="stepscope")
@click.option("--traceback", is_flag=True, help="Show where an unexpected error came from.")
def cli(*, traceback: bool) -> None:
    """Find where PyTorch training steps lose time, and what to change.

    \b
    stepscope record -- python train.py    records some steps; the script is not changed
    stepscope advise log/            what to fix, from the traces below log/
    stepscope explain RULE           what a piece of advice means, and what it rests on
    stepscope compare before/ after/ what changed, and what came of the advice
    stepscope health log/            what the traces are worth, and what to record next
    stepscope export --list          every table of numbers, as CSV, JSON or Parquet
    stepscope memory FILE            who holds the memory, of a trace or a memory snapshot
    stepscope serve log/             advice as a page in the browser
    tensorboard --logdir log/        the same as a tab of TensorBoard

    Record a trace with torch.profiler.profile(on_trace_ready=
    torch.profiler.tensorboard_trace_handler("log/run")).
    """


for _command in COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no µ still gets its advice
    cli(prog_name="stepscope")
