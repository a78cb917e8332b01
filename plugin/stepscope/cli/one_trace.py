"""Commands that make one file of one recording."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stepscope.cli.file_reading import Effort, answer_of, order_to, read
from stepscope.cli.input_files import files_at
from stepscope.cli.selection import Selection

if TYPE_CHECKING:
    from stepscope.model.trace import Trace
    from stepscope.storage.discover import TraceFile

MOST_NAMED = 5


def one_at(path: str, selection: Selection) -> "TraceFile":
    """Return the recording at a path.

    Raises:
        UnreadableError: nothing is there.
        UsageError: there are several, or none of those names.
    """
    from stepscope.base.errors import UsageError

    files, problems = files_at([path])
    files = selection.of(files)
    if problems:
        raise problems[0]
    if len(files) != 1:
        msg = (
            f"this takes one recording, and there are {len(files)}: {_named(files)}. "
            "Choose with --run, --worker and --span, or name the file"
        )
        raise UsageError(msg)
    return files[0]


def _named(files: "Sequence[TraceFile]") -> str:
    shown = [f"{file.run}/{file.worker} span {file.span}" for file in files[:MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(files) > MOST_NAMED else "")


def done(file: "TraceFile", task: "Callable[[Trace], Any]", effort: Effort) -> Any:  # noqa: ANN401
    """Read a recording, do something with it, and return what that gives.

    Raises:
        UnreadableError: it cannot be read.
        UsageError: it does not hold what is asked for, or nothing can be written.
    """
    from stepscope.base.errors import UnreadableError, UsageError
    from stepscope.readers.tasks import Refusal

    settings = effort.settings()
    (outcome,) = read([order_to(task, file, settings)], settings)
    if isinstance(outcome, UnreadableError):
        raise outcome
    answer = answer_of(file, outcome)
    if isinstance(answer, Refusal):
        raise UsageError(answer.message)
    return answer
