"""Times and records the scripts of `zoo/`: `python -m zoo_runs [SCRIPT …] [--missing]`.

Each script runs without a profiler in turns: with all its faults, without each of them, and
healthy; three turns of each (`--turns`), in an order that is reversed every other time. Each run is
a process of its own, forked after torch was imported. Then `stepscope record` records the script
with all faults, and healthy. Results and traces go to `build/zoo/SCRIPT/`; `--record` makes only
the traces anew. `--gpu`: the scripts of `zoo_gpu/`, which need one, to `build/zoo_gpu/`.
"""

import argparse
import ast
import os
import re
import runpy
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import torch

from pairs.result import FILE_NAME, half_interval
from pairs.turns import processor

FOLDER = Path(__file__).with_name("zoo")
GPU_FOLDER = Path(__file__).with_name("zoo_gpu")
BUILD = FOLDER.parents[2] / "build"
MOST_S = 120
LAST_LINE = re.compile(r"^steps=(\d+) seconds=([\d.]+) samples=(\d+)$", re.MULTILINE)
FAULT_MARK = re.compile(r"# fault: (\w+)")
FAULTY, HEALTHY = "faulty", "healthy"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What a run printed."""

    steps: int
    seconds: float
    samples: int

    @property
    def sample_ms(self) -> float:
        """Time per sample, ms."""
        return 1e3 * self.seconds / self.samples


class ScriptResult(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of a script, by the faults that were switched off; `*`: all of them."""

    script: str
    faults: dict[str, str]
    """Name and description."""
    lines: dict[str, tuple[int, ...]]
    """Lines that a fault makes slow."""
    turns: dict[str, tuple[Turn, ...]]
    """`""`: with all faults; `"name"`: without this one; `"*"`: healthy."""
    torch: str
    processor: str
    core_count: int
    device: str = ""
    """Name of the GPU; empty: without one."""

    @property
    def before_ms(self) -> float:
        """Mean step with all faults."""
        return statistics.fmean(1e3 * turn.seconds / turn.steps for turn in self.turns[""])

    def saving_ms(self, fault: str) -> float:
        """Return what the fix of a fault saves of the step with all of them."""
        return statistics.fmean(self._savings_ms(fault))

    def error_ms(self, fault: str) -> float:
        """Return half of the 95 % interval of that saving."""
        return half_interval(self._savings_ms(fault))

    def _savings_ms(self, fault: str) -> list[float]:
        pairs = zip(self.turns[""], self.turns[fault], strict=True)
        samples = self.turns[""][0].samples / self.turns[""][0].steps
        return [samples * (before.sample_ms - after.sample_ms) for before, after in pairs]


def main(options: argparse.Namespace) -> int:
    """Run the scripts; report the ones that fail."""
    failures = []
    scripts = GPU_FOLDER if options.gpu else FOLDER
    out = options.out or BUILD / scripts.name
    end = time.monotonic() + 60 * options.minutes
    for name in options.names or script_names(scripts):
        folder = out / name
        if time.monotonic() > end:
            failures.append(f"{name}: no time left")
            continue
        if options.missing and (folder / FILE_NAME).exists():
            continue
        begin = time.monotonic()
        try:
            if options.record:
                record_both(name, folder)
                continue
            result = run_script(name, folder, options.turns)
        except Exception as error:  # the others still run
            failures.append(f"{name}: {type(error).__name__}: {error}")
            report(failures[-1])
            continue
        report(f"{name} ({time.monotonic() - begin:.0f} s): {summary(result)}")
    for failure in failures:
        report(f"failed: {failure}")
    return 1 if failures else 0


def summary(result: ScriptResult) -> str:
    """Returns a result in one line."""
    savings = ", ".join(
        f"{name} {result.saving_ms(name):.2f} ± {result.error_ms(name):.2f}"
        for name in (*result.faults, "*")
    )
    return f"{result.before_ms:.2f} ms; saves {savings}"


def script_names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Returns the names of all scripts of a folder."""
    return tuple(sorted(path.stem for path in folder.glob("*.py")))


def script_path(name: str) -> Path:
    """Returns the path of a script, by its name."""
    on_gpu = GPU_FOLDER / f"{name}.py"
    return on_gpu if on_gpu.exists() else FOLDER / f"{name}.py"


def read_script(name: str) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
    """Returns a script's faults, and the lines that each makes slow.

    Raises:
        ValueError: a fault has no line, or a line names no fault.
    """
    text = script_path(name).read_text()
    values = [
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "FAULTS" for target in node.targets)
    ]
    (faults,) = values
    lines: dict[str, list[int]] = {fault: [] for fault in faults}
    for number, line in enumerate(text.splitlines(), 1):
        for fault in FAULT_MARK.findall(line):
            if fault not in lines:
                message = f"{name}.py({number}): FAULTS has no {fault}"
                raise ValueError(message)
            lines[fault].append(number)
    if missing := [fault for fault, numbers in lines.items() if not numbers]:
        message = f"{name}.py: no line is marked for {', '.join(missing)}"
        raise ValueError(message)
    return faults, {fault: tuple(numbers) for fault, numbers in lines.items()}


def run_script(name: str, folder: Path, turn_count: int) -> ScriptResult:
    """Runs a script in turns and records it; writes the result into its folder.

    Raises:
        RuntimeError: a run failed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    faults, lines = read_script(name)
    variants = {"": tuple(faults)}
    variants |= {fault: tuple(other for other in faults if other != fault) for fault in faults}
    variants["*"] = ()
    turns: dict[str, list[Turn]] = {variant: [] for variant in variants}
    for number in range(turn_count):
        for variant in list(variants)[:: -1 if number % 2 else 1]:
            turns[variant].append(run_once(name, variants[variant], folder / "log.txt"))
    result = ScriptResult(
        script=name,
        faults=faults,
        lines=lines,
        turns={variant: tuple(several) for variant, several in turns.items()},
        torch=str(torch.__version__),
        processor=processor(),
        core_count=os.cpu_count() or 0,
        device=device_name() if script_path(name).parent == GPU_FOLDER else "",
    )
    (folder / FILE_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    record_both(name, folder)
    return result


def device_name() -> str:
    """Returns the GPU's name by its driver: torch would open the device, which a fork cannot."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def record_both(name: str, folder: Path) -> None:
    """Records a script with all faults, and healthy; earlier traces are replaced.

    Raises:
        RuntimeError: it failed, or nothing was recorded.
    """
    for run, faults in ((FAULTY, tuple(read_script(name)[0])), (HEALTHY, ())):
        shutil.rmtree(folder / run, ignore_errors=True)
        record(name, faults, folder / run)


def run_once(name: str, faults: Sequence[str], log: Path) -> Turn:
    """Runs a script without a profiler in a forked process.

    Raises:
        RuntimeError: it failed, takes too long, or printed no times.
    """
    child = os.fork()
    if not child:
        run_forked(name, faults, log)
    status = waited(child)
    text = log.read_text(errors="replace")
    match = LAST_LINE.search(text)
    if status or match is None:
        message = f"{name} {' '.join(faults)}: {' | '.join(text.splitlines()[-5:])}"
        raise RuntimeError(message)
    steps, seconds, samples = match.groups()
    return Turn(steps=int(steps), seconds=float(seconds), samples=int(samples))


def waited(child: int) -> int:
    """Waits for a process, and returns its status; ends it after `MOST_S`."""
    end = time.monotonic() + MOST_S
    while time.monotonic() < end:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return status
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def run_forked(name: str, faults: Sequence[str], log: Path) -> None:
    """Becomes the script, and ends the process."""
    status = 1
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        script = script_path(name)
        sys.argv = [str(script), *faults]
        sys.path[0] = str(script.parent)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            runpy.run_path(sys.argv[0], run_name="__main__")
            os.chdir("/")
        status = 0
    except BaseException as error:
        sys.stdout.flush()
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def record(name: str, faults: Sequence[str], folder: Path) -> None:
    """Records a script as a user does.

    Raises:
        RuntimeError: it failed, or nothing was recorded.
    """
    script = [sys.executable, str(script_path(name)), *faults]
    command = [sys.executable, "-m", "stepscope", "record", "--log-dir", str(folder), "--", *script]
    with tempfile.TemporaryDirectory() as working:
        done = subprocess.run(  # noqa: S603 (a script of this folder)
            command, cwd=working, capture_output=True, text=True, timeout=MOST_S, check=False
        )
    if done.returncode or not any(traces_in(folder)):
        message = f"recording {' '.join(script)}: {done.stderr[-500:]}"
        raise RuntimeError(message)


def traces_in(folder: Path) -> Iterator[Path]:
    """Yields the traces of a run."""
    yield from folder.glob("*.pt.trace.json*")


def report(text: str) -> None:
    """Writes a line of progress."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def parse_options() -> argparse.Namespace:
    """Reads the options."""
    parser = argparse.ArgumentParser(
        prog="python -m zoo_runs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="SCRIPT", help="default: all")
    parser.add_argument("--gpu", action="store_true", help="the scripts of zoo_gpu/")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: build/zoo, build/zoo_gpu")
    parser.add_argument("--turns", type=int, default=3, help="of each variant (default: 3)")
    parser.add_argument(
        "--minutes", type=float, default=1e3, help="start no script after this time"
    )
    parser.add_argument("--missing", action="store_true", help="only scripts without a result")
    parser.add_argument("--record", action="store_true", help="only record, without turns")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(parse_options()))
