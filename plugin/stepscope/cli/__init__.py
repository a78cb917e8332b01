"""The command line: one file per command, with imports inside the commands for a fast start."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from stepscope._version import __version__
from stepscope.base.errors import StepscopeError, suggestion
from stepscope.base.plain_text import plain_lines, without_commands
from stepscope.cli.advise import advise
from stepscope.cli.compare import compare
from stepscope.cli.cut import cut
from stepscope.cli.explain import explain
from stepscope.cli.export import export
from stepscope.cli.health import health
from stepscope.cli.memory import memory
from stepscope.cli.output import log_formatter, prepare_streams
from stepscope.cli.overview import overview
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
PIPE_CLOSED = 141
"""Exit status if the reader of the output ends first, such as `head`; as in shells."""


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


@contextmanager
def _errors_as_exits(*, has_traceback: bool) -> Iterator[None]:
    """Turn every error into one line and an exit status, unless tracebacks are requested."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except StepscopeError as error:
        raise _Refusal(str(error)) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        _discard_output()
        raise click.exceptions.Exit(PIPE_CLOSED) from None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise _Refusal(message) from error
    except Exception as error:
        if has_traceback:
            raise
        message = (
            f"failed ({type(error).__name__}: {error}). This is a bug: run `stepscope "
            "--traceback …` and report its output"
        )
        raise _Failure(message) from error


def _discard_output() -> None:
    """Write the rest of the output to nowhere, so that Python's exit does not fail on it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class _Commands(click.Group):
    """Turns errors into exit statuses, and suggests commands."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:  # noqa: ANN401
        """Parse the arguments; `--help` prints here."""
        with _errors_as_exits(has_traceback=False):
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _errors_as_exits(has_traceback=ctx.params["traceback"]):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; the error for an unknown one suggests others."""
        name = args[0]
        is_valid = name in self.commands or name.startswith("-")
        if not is_valid and not ctx.resilient_parsing:
            self._refuse(ctx, name)
        return super().resolve_command(ctx, args)

    def _refuse(self, ctx: click.Context, name: str) -> None:
        if os.path.exists(name):  # noqa: PTH110 (Path.exists raises where a name is too long)
            ctx.fail(f"{name} is a path, not a command. Try: stepscope advise {name}")
        hint = suggestion(name, self.commands) or "`stepscope --help` lists all commands."
        ctx.fail(f"There is no command {name!r}. {hint}".rstrip())


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="stepscope")
@click.option("--traceback", is_flag=True, help="Show the traceback of an unexpected error.")
@click.pass_context
def cli(context: click.Context, /, *, traceback: bool) -> None:
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
    stepscope.trace_handler("log/run")); traces of torch's own handler work too. Without a command,
    stepscope lists the traces of the current folder.

    \b
    Exit status:
      0    success
      1    a requested check fails (--fail-on, --fail-on-regression), or a table is missing
      2    a wrong option, or nothing could be read
      3    a defect of stepscope
      130  Ctrl-C
      141  the output was closed early, as by `| head`
    `stepscope record` ends with the status of its command.
    """
    del traceback
    if context.invoked_subcommand is None:
        overview()


for _command in COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command line."""
    prepare_streams()
    import logging

    if logging.lastResort is not None:  # prints warnings, as no other handler is set
        logging.lastResort.setFormatter(log_formatter())
    cli(prog_name="stepscope")
