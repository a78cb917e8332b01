"""The sdist and the wheel as a user gets them: built, installed in an empty environment, run."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import hatch_build
from programs import running
from waiting import LONG_SECONDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
STATIC = "plugin/stepscope/static"
SAMPLE_LOGS = ROOT / "sample_logs"


@dataclass(frozen=True, kw_only=True)
class Distributions:
    sdist: Path
    wheel: Path


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An environment that holds the wheel and what the wheel asks for, and nothing else."""

    binaries: Path

    def run(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.binaries / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.binaries,
            env=without_development_paths(),
            timeout=LONG_SECONDS,
        )

    def python(self, code: str) -> str:
        done = self.run("python", "-W", "error", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def without_development_paths() -> dict[str, str]:
    """Return the environment without what could let a clone's own modules in.

    Bytecode is kept: what is installed without it is compiled when it is first imported.
    """
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in left_out}


def build(source: Path, out: Path, **variables: str) -> None:
    """Build as `pip` would: the sdist from the sources, and the wheel from the sdist."""
    environment = without_development_paths() | variables
    environment.pop(hatch_build.SKIP, None)
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def copied_sources(destination: Path) -> Path:
    """Copy what a clone would hold, changes that are not committed yet with it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    needed = re.compile(r"(plugin|frontend)/|(pyproject\.toml|hatch_build\.py|[A-Z]+(\.md)?)$")
    for name in listed.split("\0"):
        if needed.match(name) and (ROOT / name).is_file():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, destination / name)
    shutil.copyfile(ROOT / ".gitignore", destination / ".gitignore")
    return destination


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    out = tmp_path_factory.mktemp("dist")
    build(ROOT, out)
    [sdist] = out.glob("*.tar.gz")
    [wheel] = out.glob("*.whl")
    return Distributions(sdist=sdist, wheel=wheel)


@pytest.fixture(scope="module")
def installed(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=True)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    installed = Installed(binaries=binaries)
    install(installed, str(distributions.wheel))
    return installed


def install(installed: Installed, requirement: str) -> None:
    command = [str(installed.binaries / "python"), "-m", "pip", "install", "--quiet"]
    done = subprocess.run(
        [*command, "--no-compile", requirement],
        capture_output=True,
        text=True,
        check=False,
        env=without_development_paths(),
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def with_tensorboard(distributions: Distributions, installed: Installed) -> Installed:
    """The same environment with the extra; the tests that use it are the last ones."""
    assert installed.run("python", "-c", "import tensorboard").returncode != 0
    install(installed, f"{distributions.wheel}[tensorboard]")
    return installed


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with one real recording."""
    recordings = sorted(SAMPLE_LOGS.rglob("*.pt.trace.json.gz"))
    assert recordings, f"no recording in {SAMPLE_LOGS}: run `make record`"
    folder = tmp_path_factory.mktemp("log")
    (folder / "run").mkdir()
    shutil.copy(min(recordings, key=lambda path: path.stat().st_size), folder / "run")
    return folder


@pytest.fixture(scope="module")
def tensorboard(with_tensorboard: Installed, logs: Path) -> Iterator[str]:
    """The address of a TensorBoard that runs in the empty environment."""
    command = [str(with_tensorboard.binaries / "python"), "-m", "tensorboard.main"]
    with address_of([*command, "--logdir", str(logs), "--port", "0"], logs) as address:
        yield address


@contextmanager
def address_of(command: list[str], logs: Path) -> Iterator[str]:
    """Run a server, and yield the address that it prints."""
    with running(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=logs,
        env=without_development_paths(),
    ) as server:
        assert server.stdout is not None
        said = []
        try:
            for line in server.stdout:
                said.append(line)
                if found := re.search(r"at (http://\S+:\d+)/", line):
                    yield found[1]
                    break
            else:
                pytest.fail("the server did not start:\n" + "".join(said))
        finally:
            server.terminate()


def fetched(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=LONG_SECONDS) as answer:  # noqa: S310 - our own server
        content = answer.read()
    assert isinstance(content, bytes)
    return content


def names_in_sdist(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_sdist_carries_the_sources_and_the_page_built_from_them(
    distributions: Distributions, tmp_path: Path
) -> None:
    with tarfile.open(distributions.sdist) as archive:
        # Python 3.11.4 and later want to be told; it is our own archive.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)  # noqa: S202
    [source] = tmp_path.iterdir()
    assert (source / STATIC / "index.html").is_file()
    assert (source / "frontend" / "package-lock.json").is_file()
    assert hatch_build.page_of(source).is_fresh


def test_sdist_holds_nothing_but_sources(distributions: Distributions) -> None:
    names = names_in_sdist(distributions.sdist)
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name]
    assert {name.partition("/")[0] for name in names} <= {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "frontend",
        "hatch_build.py",
        "plugin",
        "pyproject.toml",
    }


def test_wheel_holds_the_whole_page(distributions: Distributions) -> None:
    in_sdist = {
        name.removeprefix("plugin/")
        for name in names_in_sdist(distributions.sdist)
        if name.startswith(f"{STATIC}/") and Path(name).suffix
    }
    names = set(zipfile.ZipFile(distributions.wheel).namelist())
    assert in_sdist <= names
    assert {"stepscope/static/index.html", "stepscope/static/index.js"} <= names


def test_wheel_holds_the_compiled_scanner_and_says_for_which_machine(
    distributions: Distributions,
) -> None:
    names = zipfile.ZipFile(distributions.wheel).namelist()
    module = hatch_build.compiled_modules(ROOT)[0].library.name
    assert [name for name in names if "_scanner." in name and not name.endswith(".pyi")] == [
        f"stepscope/ingest/{module}"
    ]
    assert not [name for name in names if name.endswith((".pyx", ".c", ".map"))]
    assert not distributions.wheel.name.endswith("none-any.whl")


def test_the_installed_reader_is_the_compiled_one(installed: Installed) -> None:
    assert (
        installed.python("import stepscope.ingest; print(stepscope.ingest.is_compiled())") == "True"
    )


def test_without_a_compiler_it_installs_and_reads_and_says_so_once(
    distributions: Distributions, installed: Installed, logs: Path, tmp_path: Path
) -> None:
    python, place = installed.binaries / "python", tmp_path / "without"
    into = ["install", "--no-compile", "--no-deps", "--target", str(place)]
    command = [str(python), "-m", "pip", *into, str(distributions.sdist)]
    environment = without_development_paths() | {"CC": "/nowhere/cc"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    load = f"load_all({str(logs)!r})"
    code = f"import stepscope; print(len(stepscope.{load}), len(stepscope.{load}))"
    read = subprocess.run(
        [str(python), "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(place)},
    )
    assert read.stdout == "1 1\n", read.stderr
    assert read.stderr.count("The compiled scanner is not built") == 1


def test_wheel_holds_the_package_alone(distributions: Distributions) -> None:
    names = zipfile.ZipFile(distributions.wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {re.sub(r"-[^/]*", "", top) for top in tops} == {"stepscope"}
    assert "stepscope/py.typed" in names


def test_the_installed_package_writes_a_report_page(installed: Installed, logs: Path) -> None:
    done = installed.run("stepscope", "advise", str(logs), "--format", "html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<!doctype html>")
    assert "--background:" in done.stdout


def test_page_is_built_on_a_machine_without_node(tmp_path: Path) -> None:
    source = copied_sources(tmp_path / "clone")
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "sh").symlink_to("/bin/sh")  # npm runs scripts by it; nothing else is there
    build(source, tmp_path / "dist", PATH=str(binaries), CC="/nowhere/cc")
    [wheel] = (tmp_path / "dist").glob("*.whl")
    stamp = json.loads(zipfile.ZipFile(wheel).read("stepscope/static/build.json"))
    assert stamp["digest"] == hatch_build.sources_digest(source / "frontend")


def test_version_is_the_packages_own(installed: Installed, distributions: Distributions) -> None:
    code = "from importlib.metadata import version; print(version('stepscope'))"
    version = installed.python(code)
    assert distributions.wheel.name.startswith(f"stepscope-{version}-")
    assert installed.python("from stepscope._version import __version__ as v; print(v)") == version


def test_command_line_introduces_itself(installed: Installed) -> None:
    done = installed.run("stepscope", "--help")
    assert done.returncode == 0, done.stderr
    assert {"advise", "serve"} <= set(re.findall(r"\w+", done.stdout))


def test_advice_needs_nothing_but_what_the_wheel_asks_for(installed: Installed, logs: Path) -> None:
    assert installed.run("python", "-c", "import torch").returncode != 0
    done = installed.run("stepscope", "advise", str(logs), "--format", "json")
    assert done.returncode == 0, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert [outcome for outcome in run["outcomes"] if outcome["status"] == "failed"] == []
    assert run["outcomes"]


def test_the_page_needs_no_tensorboard(installed: Installed, logs: Path) -> None:
    command = [str(installed.binaries / "stepscope"), "serve", str(logs), "--port", "0"]
    with address_of(command, logs) as address:
        assert b"<title>" in fetched(f"{address}/")
        assert "run" in json.dumps(json.loads(fetched(f"{address}/api/runs")))


def test_tensorboard_finds_the_plugin(with_tensorboard: Installed) -> None:
    code = (
        "from importlib.metadata import entry_points;"
        "[point] = entry_points(group='tensorboard_plugins', name='stepscope');"
        "print(point.load().__name__)"
    )
    assert with_tensorboard.python(code) == "StepscopeLoader"


def test_tensorboard_lists_the_tab(tensorboard: str) -> None:
    listed = json.loads(fetched(f"{tensorboard}/data/plugins_listing"))["stepscope"]
    assert listed["enabled"]
    module = listed["loading_mechanism"]["module_path"].lstrip("./")
    assert b"render" in fetched(f"{tensorboard}/{module}")


def test_tensorboard_serves_the_runs(tensorboard: str) -> None:
    runs = json.loads(fetched(f"{tensorboard}/data/plugin/stepscope/api/runs"))
    assert "run" in json.dumps(runs)
