"""stepscope finds where PyTorch training steps lose time, and says what to change.

```python
import stepscope

run = stepscope.load("log/resnet50")   # run.workers[0].operators, .kernels, …: pandas frames
print(stepscope.advise(run))           # the same advice as `stepscope advise log/resnet50`
stepscope.table(run, "operators")      # what `stepscope export` writes, as a pandas frame
print(stepscope.compare(run, other))   # what changed, told from noise
```
In a training script, `trace_handler` and `schedule_for` record such runs: see their help.

Nothing heavy is imported until one of these is called.
"""

from os import PathLike

from stepscope._version import __version__
from stepscope.base import deprecation

TYPE_CHECKING = False  # type checkers know this name; `typing` would cost TensorBoard 9 ms
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pandas import DataFrame

    from stepscope.library import Advice, Comparison
    from stepscope.model.table import AnyTable
    from stepscope.model.trace import Run, Trace
    from stepscope.recording import schedule_for, trace_handler

__all__ = [
    "__version__",
    "advise",
    "all_tables",
    "compare",
    "load",
    "load_all",
    "schedule_for",
    "table",
    "trace_handler",
]

deprecation.install()


def __getattr__(name: str) -> object:
    """Return what records, imported when it is asked for."""
    if name not in ("schedule_for", "trace_handler"):
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from stepscope import recording

    return getattr(recording, name)


def load(path: str | PathLike[str], *, jobs: int = 1) -> "Run":
    """Return the run at a path: a run's folder, a log directory with one run, or a trace file.

    `run.workers` holds one `Trace` a recording; each has `worker`, `span`, and its frames.
    With `jobs`, so many files are read at once, large ones in processes of their own: those never
    run your script again, so it needs no `if __name__ == "__main__"` for it.

    Raises:
        UnreadableError: nothing there can be read; the message says what to do.
        UsageError: there are several runs; the message names them.
    """
    from stepscope import library

    return library.load(path, jobs=jobs)


def load_all(path: str | PathLike[str], *, jobs: int = 1) -> "tuple[Run, ...]":
    """Return every run below a path; a file that cannot be read is a warning.

    `jobs` is as for `load`.

    Raises:
        UnreadableError: nothing there can be read.
    """
    from stepscope import library

    return library.load_all(path, jobs=jobs)


def advise(  # noqa: PLR0913 (each is something a user may say)
    run: "Run",
    *,
    select: "Sequence[str]" = (),
    ignore: "Sequence[str]" = (),
    options: "Mapping[str, Mapping[str, bool | float | str]] | None" = None,
    preview: bool = False,
    config: str | PathLike[str] | None = None,
) -> "Advice":
    """Return what to fix in a run: `print` it, show it in a notebook, or use its `report`.

    A recording that cannot be analysed is a warning.

    Args:
        run: What `load` gave.
        select: Only these rules: ids, categories, severities, or `all`.
        ignore: Not these; as `select`.
        options: Rule id to option to value, as `{"item-sync": {"least_idle_share": 0.02}}`.
        preview: Ask rules too that are still on trial.
        config: A `stepscope.toml` or `pyproject.toml`; what is said here goes before it.

    Raises:
        UnreadableError: no recording of the run can be analysed.
        UsageError: there is no such rule or option, or a value does not fit it.
    """
    from stepscope import library

    return library.advise(
        run, select=select, ignore=ignore, options=options, preview=preview, config=config
    )


def compare(before: "Run | Trace", *after: "Run | Trace") -> "Comparison":
    """Return what changed from one run, or recording, to each of the others.

    `print` it, show it in a notebook, or use its `report`: figures with their spread, which of the
    changes are told from noise, advice that was fixed, and what came of its savings.
    """
    from stepscope import library

    return library.compare(before, *after)


def table(of: "Run | Trace", name: str) -> "DataFrame":
    """Return a public table: of one recording, or of all recordings of a run.

    `all_tables()` says which there are. That of a recording (`run.workers[0]`) has the columns of
    the table's schema; that of a run begins with `run`, `worker`, `span` and `rank`. A recording
    that cannot have it is a warning.

    Raises:
        MissingDataError: no recording can have it; `remedy` is the code that records what it lacks.
        UsageError: there is no table of that name.
    """
    from stepscope import library

    return library.table(of, name)


def all_tables() -> "Mapping[str, AnyTable]":
    """Return every public table by name: each has a title, a meaning and a schema of columns."""
    from stepscope import tables

    return tables.all_tables()
