"""stepscope finds where PyTorch training steps lose time, and explains how to fix it.

```python
import stepscope

run = stepscope.load("log/resnet50")   # run.workers[0].operators, .kernels, …: pandas frames
print(stepscope.advise(run))           # the same advice as `stepscope advise log/resnet50`
stepscope.table(run, "operators")      # the table of `stepscope export`, as a pandas frame
print(stepscope.compare(run, other))   # changes, with their statistical significance
print(stepscope.whatif(run, host=0.7)) # the step that a simulation predicts
```
In a training script, `trace_handler` and `schedule_for` record such runs: see their help.

Heavy modules are imported at the first use of one of these names.
"""

from stepscope._version import __version__
from stepscope.base import deprecation

# type checkers treat this name as True; importing `typing` would cost TensorBoard 9 ms
TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.library import advise, compare, load, load_all, run_what_if, table, whatif
    from stepscope.recording import schedule_for, trace_handler
    from stepscope.tables import all_tables

__all__ = [
    "__version__",
    "advise",
    "all_tables",
    "compare",
    "load",
    "load_all",
    "run_what_if",
    "schedule_for",
    "table",
    "trace_handler",
    "whatif",
]

MODULES = {
    **dict.fromkeys(
        ("advise", "compare", "load", "load_all", "run_what_if", "table", "whatif"), "library"
    ),
    **dict.fromkeys(("schedule_for", "trace_handler"), "recording"),
    "all_tables": "tables",
}
"""The module of each public function."""

deprecation.install()


def __getattr__(name: str) -> object:
    """Import a public function at its first use."""
    if name not in MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from importlib import import_module

    return getattr(import_module(f"stepscope.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
