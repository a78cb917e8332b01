"""Messages of a recorded process: on stderr, and in its account for the command."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from stepscope.recording.record_request import ACCOUNTS, Account, RecordedTrace, RecordRequest

KIBIBYTE = 1024


class AccountWriter:
    """Writes the account of a process."""

    def __init__(self, request: RecordRequest) -> None:
        self._log_dir = request.log_dir
        self.account = Account(process=os.getpid(), parent=os.getppid(), program=program())

    def save(self) -> None:
        """Write the account to the folder that the command reads."""
        self.account.rank = rank()
        if folder := os.environ.get(ACCOUNTS):
            self.account.save(folder)

    def recording(self, first: int, last: int) -> None:
        """Print the steps to be recorded; with several ranks, on the first only."""
        if not rank():
            self._print(
                f"recording steps {first} to {last}{self._rank_suffix()} "
                f"(a step is one {self.account.steps_from})"
            )

    def written(self, written: RecordedTrace | None, *, is_reserve: bool = False) -> None:
        """Print the written file, or that it could not be saved."""
        if written is None:
            self.note("a trace could not be saved")
            return
        text = steps_text(written)
        if is_reserve and not self.account.written:
            text += f" (a step is one {self.account.steps_from})"
        self.account.written.append(written)
        self.save()
        early = "" if written.is_whole else ", and was then cut short"
        if is_reserve:
            early += ", in case the script ends soon"
        size = f"{Path(written.path).stat().st_size / KIBIBYTE:,.0f} KiB"
        self._print(
            f"recorded {text}{self._rank_suffix()}{early}: {self._shown(written.path)} ({size})"
        )

    def remove_batch_traces(self) -> None:
        """Remove traces of batches before the first optimizer step: they were an evaluation."""
        written, self.account.written = self.account.written, []
        self.account.is_complete = False
        for file in written:
            with suppress(OSError):
                Path(file.path).unlink()
        if written:
            self._print("the optimizer stepped: traces of earlier batches or calls are removed")

    def remove(self, written: RecordedTrace | None) -> None:
        """Remove a trace that a later one replaces."""
        if written is not None and written in self.account.written:
            self.account.written.remove(written)
            self.save()
            with suppress(OSError):
                Path(written.path).unlink()

    def note(self, text: str) -> None:
        """Print a deviation from the request."""
        self.account.notes.append(text)
        self.save()
        self._print(text)

    def _rank_suffix(self) -> str:
        number = rank()
        return "" if number is None else f" of rank {number}"

    def _shown(self, path: str) -> str:
        """Return a path below the working folder as a relative path."""
        folder = os.getcwd()  # noqa: PTH109 (a text is compared)
        return os.path.relpath(path, folder) if path.startswith(folder + os.sep) else path

    def _print(self, text: str) -> None:
        try:
            sys.stderr.write(f"stepscope: {text}\n")
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):  # closed or missing
            return


def steps_text(written: RecordedTrace) -> str:
    """Return the recorded steps as text: `steps 12 to 19`."""
    if not written.first_step and written.since_s:
        return f"the run from {written.since_s:.0f} s after the import of torch, without steps"
    if not written.first_step:
        return "the whole run, without steps"
    last = written.first_step + written.step_count - 1
    if not written.step_count:
        return f"part of step {written.first_step}"
    return f"step {last}" if last == written.first_step else f"steps {written.first_step} to {last}"


def program() -> str:
    """Return the name of the script, or of the module run with `-m`."""
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word == "-m":
            return next(words, "")
        if not word.startswith("-"):
            return Path(word).name
        if word in ("-W", "-X"):
            next(words, "")
        elif word == "-c":
            return "-c"
    return ""


def rank() -> int | None:
    """Return the rank among several; before the process group exists, the launcher's variable."""
    try:
        import torch.distributed as group

        if group.is_available() and group.is_initialized():
            return int(group.get_rank()) if group.get_world_size() > 1 else None
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            return int(os.environ["RANK"])
    except (ImportError, KeyError, ValueError, RuntimeError):
        return None
    return None
