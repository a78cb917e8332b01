"""Summaries in S3, through moto's real server by the real s3fs and botocore."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import s3fs
from click.testing import CliRunner
from moto.server import ThreadedMotoServer

from logs import write_run
from s3_environment import environment
from stepscope.base.config import SummarySettings
from stepscope.cli import cli
from stepscope.storage import object_files
from stepscope.summaries.store import Store
from summaries_of import difference, files_at, summary_of

PLACE = "s3://kept/of/us"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    server.stop()


@pytest.fixture
def s3(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty bucket, and an environment that leads to it."""
    for name, value in environment(address).items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem(use_listings_cache=False)
    if system.exists("kept"):
        system.rm("kept", recursive=True)
    system.mkdir("kept")
    yield system
    s3fs.S3FileSystem.clear_instance_cache()


def test_objects_are_written_listed_read_and_removed(s3: Any) -> None:
    folder = "s3://kept/a folder"
    assert object_files.listed(folder) == {}
    object_files.write(folder, "one", b"first")
    object_files.write(folder, "one", b"second")
    s3.pipe("kept/a folder/below/two", b"not of this folder")
    assert {name: stamp.size_bytes for name, stamp in object_files.listed(folder).items()} == {
        "one": 6
    }
    assert object_files.read(folder, "one") == b"second"
    object_files.remove(folder, ["one", "never there"])
    assert object_files.read(folder, "one") is None


def test_what_is_kept_in_s3_is_what_was_said_and_many_files_become_one(
    s3: Any, tmp_path: Path
) -> None:
    files = files_at(write_run(tmp_path / "log", *(f"rank{each}" for each in range(10))))
    settings = SummarySettings(location=PLACE)
    kept = Store(settings)
    for file, stamp in files:
        kept.add(file, stamp, summary_of(file))
        kept.flush()
    known = Store(settings).find(files, with_samples=True)
    assert [difference(summary_of(file), known[file.id]) for file, _ in files] == [""] * 10
    assert len(s3.find("kept/of/us")) == 2


def test_a_damaged_object_costs_itself(s3: Any, tmp_path: Path) -> None:
    files = files_at(write_run(tmp_path / "log"))
    kept = Store(SummarySettings(location=PLACE))
    kept.add(*files[0], summary_of(files[0][0]))
    kept.flush()
    [path] = s3.find("kept")
    s3.pipe(path, b"damaged")
    assert Store(SummarySettings(location=PLACE)).find(files) == {}
    assert s3.find("kept") == []


@pytest.mark.slow
@pytest.mark.parametrize("place", [PLACE, "s3://nowhere/at/all"])
def test_a_command_says_the_same_whatever_is_there(place: str, s3: Any, tmp_path: Path) -> None:
    del s3  # it is there
    log = write_run(tmp_path / "log", "rank0", "rank1")
    said = [
        CliRunner().invoke(cli, ["advise", str(log), "--format", "json", "--summaries", each])
        for each in ("0", place, place)
    ]
    assert [(each.exit_code, each.stdout) for each in said] == [(0, said[0].stdout)] * 3
