"""Run the core tests with each installed Python, with the lowest and the newest dependencies.

The sdist is built once, a wheel from it for each Python, with the compiled modules where there is a
compiler. Each combination has its own environment below build/versions, without PyTorch. The table
is printed as Markdown: docs/installing.md has the last one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "versions"
VERSION = (
    "import platform, sys; t = 't' if 't' in getattr(sys, 'abiflags', '') else ''; "
    "print(t + platform.python_version(), sys.version_info >= (3, 11))"
)
COMMANDS = ("python3.11", "python3.12", "python3.13", "python3.14", "python3.14t")
RESOLUTIONS = ("lowest", "newest")
TOOLS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "pyyaml", "fsspec")
"""What the tests import, always the newest."""
TESTS = (
    "test_ingest.py",
    "test_frames.py",
    "test_tables.py",
    "test_advice.py",
    "test_compare_cli.py",
    "test_api.py",
    "test_tensorboard.py",
)
"""Input, frames, analyses, rules, CLI, API and tab, in a minute of one core."""
SHOWN = ("pandas", "numpy", "msgspec", "flask", "tensorboard")
FACTS = (
    "import json, stepscope.ingest as ingest; from importlib.metadata import version; "
    f"print(json.dumps({{'compiled': ingest.is_compiled(), **{{n: version(n) for n in {SHOWN}}}}}))"
)


@dataclass(frozen=True, kw_only=True)
class Python:
    """An interpreter."""

    name: str
    """Such as `3.13.0`; `t3.14.0` is free-threaded."""
    path: str


def uv(*arguments: str | Path) -> str:
    """Run uv and return its output; its errors end this program."""
    program = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    command = [program, "--no-progress", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def installed_pythons() -> Iterator[Python]:
    """Yield the newest CPython of each minor version on PATH and among pyenv's."""
    paths = [path for name in COMMANDS if (path := shutil.which(name))]
    paths += sorted(map(str, Path.home().glob(".pyenv/versions/*/bin/python")))
    newest: dict[str, Python] = {}
    for python in filter(None, map(python_at, paths)):
        minor, _, patch = python.name.rpartition(".")
        known = newest.get(minor)
        if known is None or known.name.rpartition(".")[2].zfill(4) < patch.zfill(4):
            newest[minor] = python
    yield from (python for minor, python in sorted(newest.items()))


def python_at(path: str) -> Python | None:
    """Return the interpreter at a path, or None for one that is too old or does not run."""
    done = subprocess.run([path, "-c", VERSION], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    name, is_recent = done.stdout.split()
    return Python(name=name, path=path) if is_recent == "True" else None


def requirements(python: Python, resolution: str, wheel: Path, folder: Path) -> list[str | Path]:
    """Return what is to be installed: the wheel, its dependencies and the test tools."""
    if resolution == "newest":
        return [f"{wheel}[tensorboard]", *TOOLS]
    listed = folder / "lowest.txt"
    lowest = ("--no-build", "--resolution", "lowest-direct", "--extra", "tensorboard")
    uv("pip", "compile", "-q", *lowest, "--python", python.path, "pyproject.toml", "-o", listed)
    return [wheel, *TOOLS, "-r", listed]


def tested(python: Python, resolution: str, sdist: Path) -> list[str]:
    """Return the cells of a row of the table: versions, and the tests' last line."""
    folder = FOLDER / f"{python.name.replace(' ', '-')}-{resolution}"
    shutil.rmtree(folder, ignore_errors=True)
    uv("build", "-q", "--wheel", "--python", python.path, "-o", folder / "wheel", sdist)
    [wheel] = (folder / "wheel").glob("*.whl")
    uv("venv", "-q", "--python", python.path, folder / "venv")
    interpreter = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    asked = requirements(python, resolution, wheel, folder)
    uv("pip", "install", "-q", "--no-build", "--python", interpreter, *asked)
    facts = json.loads(subprocess.check_output([interpreter, "-c", FACTS], cwd=folder, text=True))
    log = folder / "tests.txt"
    command: list[str | Path] = [
        interpreter,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-m",
        "not (slow or recording)",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"STEPSCOPE_HYPOTHESIS": "brief", "PYTHONDONTWRITEBYTECODE": "1"}
    with log.open("w") as sink:
        status = subprocess.run(
            [*command, "-p", "no:cacheprovider", *(f"tests/{name}" for name in TESTS)],
            cwd=ROOT,
            env=environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    reader = "compiled" if facts["compiled"] else "Python"
    last_line = log.read_text().splitlines()[-1].partition(" in ")[0]
    if status not in (0, 1):
        last_line = f"not run: {log.relative_to(ROOT)}"
    return [python.name, resolution, *(facts[name] for name in SHOWN), reader, last_line]


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", metavar="PATH", help="an interpreter to use")
    parser.add_argument("--only", choices=RESOLUTIONS, help="only these dependencies")
    return parser.parse_args()


def row(cells: Sequence[str]) -> None:
    """Print a row of the table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> int:
    """Print the table; return 1 if a test failed anywhere."""
    arguments = options()
    pythons = list(installed_pythons())
    if arguments.python:
        found = {path: python_at(path) for path in arguments.python}
        if missing := [path for path, python in found.items() if python is None]:
            sys.exit(f"no Python 3.11 or later runs at {', '.join(missing)}")
        pythons = [python for python in found.values() if python]
    uv("build", "-q", "--sdist", "-o", FOLDER, ".")
    sdist = max(FOLDER.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    row(["Python", "dependencies", *SHOWN, "scanner", "core tests"])
    row(["---"] * (len(SHOWN) + 4))
    has_failed = False
    for python in pythons:
        for resolution in [arguments.only] if arguments.only else RESOLUTIONS:
            begin_s = time.monotonic()
            cells = tested(python, resolution, sdist)
            row(cells)
            print(
                f"{python.name} {resolution}: {time.monotonic() - begin_s:.0f} s", file=sys.stderr
            )
            has_failed |= any(word in cells[-1] for word in ("failed", "error", "not run"))
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
