"""Runs before a script whose PYTHONPATH begins with this folder, as set by `stepscope record`.

It waits for the script's own `import torch` and then starts the recorder. A script that does not
import torch runs unchanged. An error here is printed once and loses the trace, not the script. The
user's own `sitecustomize` runs as it would without this one. Older versions of Python 3 load this
file too, so it uses only their syntax, and it imports almost nothing.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (pathlib costs 10 ms)
VARIABLE = "STEPSCOPE_RECORD"
ACCOUNTS = "STEPSCOPE_RECORD_ACCOUNTS"
OLDEST = (3, 11)


def print_line(text: str) -> None:
    """Print a line to the script's stderr; nothing if stderr is closed."""
    try:
        sys.stderr.write("stepscope: " + text + "\n")
    except Exception:  # closed, full, or None
        return


def run_user_sitecustomize() -> None:
    """Remove this folder from `sys.path`, and run the user's sitecustomize."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != FOLDER]  # noqa: PTH100
    users_module = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if users_module is not None:
            sys.modules["sitecustomize"] = users_module


def write_account(more: str = "") -> None:
    """Write the account of this Python process; the recorder completes it later.

    Without the folder, no command reads it: the command has ended, or runs on another host.
    """
    path = os.path.join(os.environ.get(ACCOUNTS, ""), "%d.json" % os.getpid())  # noqa: PTH118, UP031
    try:
        if os.environ.get(ACCOUNTS):
            with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
                account = '{"process": %d, "parent": %d%s}'
                file.write(account % (os.getpid(), os.getppid(), more))
    except OSError:
        return


class TorchWatch:
    """A module finder that finds torch as usual, and then wraps its loader."""

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> "ModuleSpec | None":
        """Return torch's own spec; its loader starts the recorder after loading torch."""
        if name != "torch":
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                self.follow(spec.loader)
                return spec
        return None

    def follow(self, loader: object) -> None:
        """Make the loader start the recorder, once, after torch was imported without an error."""
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: object) -> None:
            execute(module)
            del loader.exec_module  # type: ignore[attr-defined]
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                start()

        try:
            loader.exec_module = exec_module  # type: ignore[attr-defined]
        except AttributeError:
            print_line("cannot record: the loader that imports torch cannot be wrapped")


def start() -> None:
    """Start the recorder; torch is imported."""
    try:
        recorder().start(os.environ[VARIABLE])
    except Exception as error:
        print_line("cannot record ({}: {})".format(type(error).__name__, error))  # noqa: UP032
        write_account(', "has_torch": true, "notes": ["cannot record"]')


def recorder() -> "ModuleType":
    """Return the recorder of this environment's stepscope, or of the one that contains this file.

    The latter serves a script whose environment has torch, but no stepscope, or one too old to
    record.
    """
    import importlib
    import importlib.util

    package = os.path.dirname(os.path.dirname(FOLDER))  # noqa: PTH120
    if importlib.util.find_spec("stepscope") is None:
        spec = importlib.util.spec_from_file_location(
            "stepscope",
            os.path.join(package, "__init__.py"),  # noqa: PTH118
            submodule_search_locations=[package],
        )
        if spec is None or spec.loader is None:
            raise ImportError(package)
        sys.modules["stepscope"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    elif importlib.util.find_spec("stepscope.recording") is None:
        sys.modules["stepscope"].__path__.append(package)
    return importlib.import_module("stepscope.recording.script_hooks")


def prepare() -> None:
    """Install the finder that waits for torch."""
    try:
        write_account()
        if sys.version_info < OLDEST:
            version = "%d.%d" % sys.version_info[:2]  # noqa: UP031
            print_line(
                "a process of Python " + version + " is not recorded: this requires 3.11 or newer"
            )
            return
        sys.meta_path.insert(0, TorchWatch())
    except Exception as error:
        print_line("cannot record ({}: {})".format(type(error).__name__, error))  # noqa: UP032


if VARIABLE in os.environ:
    prepare()
run_user_sitecustomize()
