"""`stepscope share`: write the page with its traces into one HTML file."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.base.formatting import file_size
from stepscope.base.plain_text import plain
from stepscope.cli import completion
from stepscope.cli.advice_options import RuleOptions, with_rules
from stepscope.cli.file_reading import Effort, with_local_effort
from stepscope.cli.input_files import files_at
from stepscope.cli.output import write_message
from stepscope.cli.selection import Selection, with_selection

if TYPE_CHECKING:
    from stepscope.api.shared_file import SharedFile
    from stepscope.storage.discover import TraceFile

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)B?", re.ASCII | re.IGNORECASE)
FACTORS = {"": 1, "k": 1000, "m": 1_000_000, "g": 1_000_000_000}
MOST_BYTES = 10**12
NOTHING_READ = 2


class FileSize(click.ParamType):  # type: ignore[type-arg] # not generic in older clicks
    """A size of a file, such as 5MB."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the size in bytes."""
        if isinstance(value, int):
            return value
        match = SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no size, such as 5MB", param, ctx)
        size_bytes = Decimal(match[1]) * FACTORS[match[2].lower()]
        if size_bytes > MOST_BYTES:
            self.fail(f"it is at most {file_size(MOST_BYTES)}", param, ctx)
        return int(size_bytes)


@click.command(short_help="Write the page with its traces into one HTML file.")
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, shell_complete=completion.files
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, writable=True),
    help="The file to write, such as report.html.",
)
@click.option(
    "--max-size",
    "most_bytes",
    type=FileSize(),
    default="5MB",
    show_default=True,
    help="Largest size of the file; less important parts are left out.",
)
@with_selection
@with_rules
@with_local_effort
def share(  # noqa: PLR0913 (one parameter per option)
    *,
    paths: tuple[str, ...],
    output: str,
    most_bytes: int,
    selection: Selection,
    rule_options: RuleOptions,
    effort: Effort,
) -> None:
    """Write the page with the traces below each PATH into one HTML file.

    The file shows what the page shows, without a server and without a network: it can be an
    artifact of a pull request, be attached to an experiment, and be opened from a disk.

    \b
    stepscope share log/resnet50 -o report.html
    stepscope share log/ --run resnet50 --worker node1_4711 -o report.html
    stepscope share log/resnet50 -o report.html --max-size 20MB

    What does not fit into the size is left out, the details of the timeline first; the file and
    standard error say what. The exit status is 0 on success, and 2 if nothing could be read.
    """
    from stepscope.api.shared_file import LEAST_BYTES

    if most_bytes < LEAST_BYTES:
        msg = f"--max-size is at least {file_size(LEAST_BYTES)}, which the page alone takes half of"
        raise click.UsageError(msg)
    folder = Path(output).parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        msg = f"--output: {folder} is no folder in which files can be written"
        raise click.UsageError(msg)
    files, problems = files_at(paths)
    files = selection.of(files)
    for problem in problems:
        write_message(str(problem))
    if not files:
        raise click.exceptions.Exit(NOTHING_READ)
    with _progress() as on_progress:
        written = _written(files, most_bytes, rule_options, effort, on_progress)
    Path(output).write_bytes(written.html)
    write_message(f"{output} is written, {file_size(len(written.html))}")
    for note in written.notes:
        click.echo(f"  {plain(note)}", err=True)


def _written(
    files: "list[TraceFile]",
    most_bytes: int,
    rule_options: RuleOptions,
    effort: Effort,
    on_progress: Callable[[str], None],
) -> "SharedFile":
    from stepscope.api import shared_file

    options = shared_file.Options(most_bytes=most_bytes, on_progress=on_progress)
    return shared_file.of_files(files, effort.settings(), rule_options.settings(), options)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is being done, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("", spinner="line") as status:
        yield lambda text: status.update(escape(text))
