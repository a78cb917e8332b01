"""Windows and macOS, simulated: POSIX is used only where other systems have another way."""

import ast
import os
import re
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.base import host_limits, urls
from stepscope.readers import child_process
from stepscope.recording import host_sampler, launch, main_thread
from stepscope.recording.handler import TraceHandler
from stepscope.recording.host_sampler import HostSampler
from stepscope.recording.termination import Termination
from stepscope.storage import FileStamp

PACKAGE = Path(host_limits.__file__).parents[1]
POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {
    "os": {
        "O_CLOEXEC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fork", "getgid",
        "getloadavg", "geteuid", "getpgid", "getpgrp", "getuid", "kill", "killpg", "mkfifo",
        "nice", "openpty",
        "pread", "register_at_fork", "sched_getaffinity", "sendfile", "set_blocking", "setsid",
        "statvfs", "sysconf", "tcgetpgrp", "uname", "wait4", "waitpid",
    },
    "signal": {
        "SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGPROF", "SIGQUIT", "SIGTSTP",
        "SIGURG", "SIGUSR1", "SIGUSR2", "alarm", "pause", "pthread_kill", "pthread_sigmask",
        "setitimer", "siginterrupt", "sigwait",
    },
    "socket": {"AF_UNIX"},
}  # fmt: skip
NAMES = [rf"{module}\.(?:{'|'.join(names)})" for module, names in POSIX_NAMES.items()]
CANDIDATES = re.compile(
    rf"\b(?:{'|'.join(NAMES)}|(?:import|from) (?:{'|'.join(POSIX_MODULES)})|"
    r"open\(|read_text\(|write_text\()"
)
GUARDED = {
    "api/web_server.py": {"resource"},
    "base/host_limits.py": {"os.sched_getaffinity", "os.sysconf", "resource"},
    "readers/child_process.py": {"fcntl"},
    "recording/host_sampler.py": {"signal.siginterrupt"},
    "recording/launch.py": {"os.O_NOCTTY", "os.getpgrp", "os.tcgetpgrp"},
    "recording/main_thread.py": {"signal.pthread_kill"},
    "recording/script_recorder.py": {"os.register_at_fork"},
    "recording/subjects/hardware.py": {"os.sched_getaffinity", "os.sysconf"},
    "recording/termination.py": {"os.kill", "os.set_blocking"},
    "storage/cache_folder.py": {"os.geteuid"},
}
"""Uses that are guarded; a test below simulates the other system, or that of the settings does."""


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Modules that may use POSIX, or open files."""
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(text)
        for path, text in texts.items()
        if CANDIDATES.search(text)
    }


def posix_uses(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                if name in POSIX_NAMES.get(module, ()):
                    yield f"{module}.{name}"
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in POSIX_MODULES)
            case ast.ImportFrom(module=str(module)) if module in POSIX_MODULES:
                yield module


def lacks_encoding(call: ast.Call) -> bool:
    """Whether a call reads or writes text in the encoding of the system."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    modes = [word.value for word in call.args if isinstance(word, ast.Constant)]
    is_text = name in ("read_text", "write_text") or (
        name == "open" and modes in ([], ["r"], ["w"], ["x"], ["a"]) and not call.args[1:]
    )
    return is_text and not any(word.arg == "encoding" for word in call.keywords)


def test_posix_is_used_only_where_it_is_guarded(trees: dict[str, ast.Module]) -> None:
    used = {path: set(posix_uses(tree)) for path, tree in trees.items()}
    assert {path: names for path, names in used.items() if names} == GUARDED


def test_texts_have_an_encoding(trees: dict[str, ast.Module]) -> None:
    lacking = [
        f"{path}:{call.lineno}"
        for path, tree in trees.items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and lacks_encoding(call)
        if ast.unparse(call.func) not in ("webbrowser.open", "os.open")
    ]
    assert not lacking


def test_limits_of_the_host_without_posix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(host_limits, "resource", None)
    monkeypatch.setattr(host_limits, "ROOT", tmp_path)
    assert host_limits.core_count(tmp_path) == os.cpu_count()
    assert host_limits.available_bytes(tmp_path) == host_limits.UNKNOWN_BYTES
    assert (host_limits.private_bytes(), host_limits.resident_bytes()) == (None, 0)
    with host_limits.data_limit(1):
        pass


def test_files_of_listings_in_windows_have_no_number() -> None:
    listed, opened, other = (
        FileStamp(size_bytes=1, modified_ns=2, inode=inode) for inode in (0, 3, 4)
    )
    assert opened.is_same_file(listed)
    assert listed.is_same_file(opened)
    assert not opened.is_same_file(other)


def test_arguments_are_quoted_as_the_shell_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert urls.shell_argument("my log") == "'my log'"
    monkeypatch.setattr(os, "name", "nt")
    assert urls.shell_argument(r"C:\my log") == r'"C:\my log"'
    assert urls.shell_argument(r"log\run") == r"log\run"


def test_sides_of_a_comparison_have_short_names_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = import_module("stepscope.cli.compare")
    monkeypatch.setattr(os, "sep", "\\")
    assert module._short(["log\\a\\before", "log\\a\\after"]) == ["before", "after"]  # noqa: SLF001


def test_names_of_workers_are_names_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = TraceHandler("log", name="node:0/a", is_sampled=False)
    assert handler._file_name().startswith("node:0/a.")  # noqa: SLF001
    monkeypatch.setattr(os, "name", "nt")
    assert handler._file_name().startswith("node_0_a.")  # noqa: SLF001


def test_pipes_are_widened_only_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "fcntl", None)
    child_process._widen(SimpleNamespace())  # type: ignore[arg-type]  # noqa: SLF001


# --- the recorder ------------------------------------------------------------------------------


def test_without_such_timers_there_are_no_samples_and_no_handlers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.getsignal(host_sampler.NUMBER)
    monkeypatch.setattr(sys, "platform", "darwin")
    sampler = HostSampler()
    sampler.step_began(1)
    assert sampler._timer is None  # noqa: SLF001
    assert signal.getsignal(host_sampler.NUMBER) is before
    monkeypatch.setattr(host_sampler, "NUMBER", 0)  # Windows
    HostSampler().step_began(1)


def test_in_windows_no_signal_ends_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.delattr(os, "set_blocking")
    termination = Termination(lambda: None)
    termination.arm()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    termination.disarm()


def test_the_main_thread_is_not_woken_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_thread, "NUMBER", 0)
    monkeypatch.delattr(signal, "pthread_kill")
    main_thread.let_signals_wake()
    main_thread._wake_main_thread()  # noqa: SLF001


def test_the_command_gets_the_signals_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "tcgetpgrp")
    for name in ("SIGHUP", "SIGUSR1", "SIGUSR2"):
        monkeypatch.delattr(signal, name)
    sent: list[int] = []
    process: Any = SimpleNamespace(send_signal=sent.append)
    with launch._forwarding_signals(process):  # noqa: SLF001
        signal.raise_signal(signal.SIGINT)  # the console sends it to the command, too
        signal.raise_signal(signal.SIGTERM)
    assert sent == [signal.SIGTERM]
