"""The command line: one file per command, with imports inside the commands for a fast start."""

import io
import sys
from typing import IO, Any

import click

from stepscope._version import __version__
from stepscope.base.errors import StepscopeError
from stepscope.base.plain_text import plain_lines, without_commands
from stepscope.cli.advise import advise
from stepscope.cli.compare import compare
from stepscope.cli.cut import cut
from stepscope.cli.explain import explain
from stepscope.cli.export import export
from stepscope.cli.health import health
from stepscope.cli.memory import memory
from stepscope.cli.output import log_formatter
from stepscope.cli.query import query
from stepscope.cli.record import record
from stepscope.cli.rules import rules
from stepscope.cli.scalars import scalars
from stepscope.cli.schema import schema
from stepscope.cli.serve import serve
from stepscope.cli.share import share
from stepscope.cli.stacks import stacks
from stepscope.cli.whatif import whatif

COMMANDS = (
    record,
    advise,
    explain,
    whatif,
    compare,
    health,
    export,
    query,
    cut,
    stacks,
    memory,
    scalars,
    share,
    serve,
    rules,
    schema,
)
UNUSABLE = 2
"""Exit status for unusable input."""
FAILED = 3
"""Exit status for a defect of stepscope; 1 is for findings, with `--fail-on`."""
INTERRUPTED = 130
"""Exit status for Ctrl-C, as in shells."""


class _Refusal(click.ClickException):
    """An error as one line on standard error."""

    exit_code = UNUSABLE

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        message = without_commands(plain_lines(self.format_message()))
        click.echo(f"stepscope: {message}", file=file or sys.stderr)


class _Failure(_Refusal):
    """An unexpected error."""

    exit_code = FAILED


class _Commands(click.Group):
    """Turns every error into one line, unless `--traceback` is given."""

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
                f"failed ({type(error).__name__}: {error}). This is a bug: run `stepscope "
                "--traceback …` and report its output"
            )
            raise _Failure(message) from error


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="stepscope")
@click.option("--traceback", is_flag=True, help="Show the traceback of an unexpected error.")
def cli(*, traceback: bool) -> None:
    """Find where PyTorch training steps lose time, and what to change.

    \b
    stepscope record -- python train.py   record some steps of an unchanged script
    stepscope advise log/                 print what to fix in the traces below log/
    stepscope explain RULE                explain a rule: check, reason, fix, options
    stepscope compare before/ after/      compare two runs, and check followed advice
    stepscope health log/                 check the traces for damage and missing data
    stepscope export --list               list the tables for CSV, JSON and Parquet
    stepscope query log/ "select …"       run SQL over those tables
    stepscope memory FILE                 show the memory use of a trace or a snapshot
    stepscope serve log/                  open the advice as a page in the browser
    stepscope share log/ -o report.html   write that page into one file
    tensorboard --logdir log/             open the same page as a tab of TensorBoard

    To record traces in your own code, use torch.profiler.profile(on_trace_ready=
    torch.profiler.tensorboard_trace_handler("log/run")).
    """


for _command in COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals without µ
    import logging

    if logging.lastResort is not None:  # prints warnings, as no other handler is set
        logging.lastResort.setFormatter(log_formatter())
    cli(prog_name="stepscope")
