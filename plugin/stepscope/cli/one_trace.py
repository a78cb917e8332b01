"""Commands that write one file from one trace."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stepscope.cli.file_reading import Effort, read, request_to, result_of
from stepscope.cli.input_files import files_at
from stepscope.cli.selection import Selection

if TYPE_CHECKING:
    from stepscope.model.trace import Trace
    from stepscope.storage.discover import TraceFile

MOST_NAMED = 5


def one_at(path: str, selection: Selection) -> "TraceFile":
    """Return the trace at a path.

    Raises:
        UnreadableError: There is no trace.
        UsageError: There are several traces, or none matches the selection.
    """
    from stepscope.base.errors import UsageError

    files, problems = files_at([path])
    files = selection.of(files)
    if problems:
        raise problems[0]
    if len(files) != 1:
        msg = (
            f"this command needs one trace, but there are {len(files)}: {_names(files)}. "
            "Select one with --run, --worker and --span, or give its file"
        )
        raise UsageError(msg)
    return files[0]


def _names(files: "Sequence[TraceFile]") -> str:
    shown = [f"{file.run}/{file.worker} span {file.span}" for file in files[:MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(files) > MOST_NAMED else "")


def run_task(file: "TraceFile", task: "Callable[[Trace], Any]", effort: Effort) -> Any:  # noqa: ANN401
    """Read a trace and return the result of a task.

    Raises:
        UnreadableError: The trace cannot be read.
        UsageError: The trace lacks the requested data, or the output cannot be written.
    """
    from stepscope.base.errors import UnreadableError, UsageError
    from stepscope.readers.tasks import Refusal

    settings = effort.settings()
    (outcome,) = read([request_to(task, file, settings)], settings)
    if isinstance(outcome, UnreadableError):
        raise outcome
    result = result_of(file, outcome)
    if isinstance(result, Refusal):
        raise UsageError(result.message)
    return result
