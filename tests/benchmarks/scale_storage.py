"""A job in a bucket of moto's S3 server compared with the same job on disk; and listing."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.job import job as made
from benchmarks.processes import measured, of_module
from benchmarks.scale_figures import Figure, condition
from benchmarks.scale_runs import SIZE_MB, advise
from benchmarks.scaled import FOLDER
from s3_environment import environment as leading_to

FILES, RANKS = 200, 256
LISTED, LISTED_IN_BUCKET, RUN = 100_000, 2_000, 1_000
SERVE = (
    "import sys; from moto.server import ThreadedMotoServer;"
    "server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False); server.start();"
    "print(server.get_host_and_port()[1], flush=True); sys.stdin.read()"
)


@contextmanager
def server() -> Iterator[Mapping[str, str]]:
    """Start moto's server; yield the environment with its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield leading_to(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.kill()
        process.wait()


def bucket(most_ranks: int) -> Iterator[Figure]:
    """Yield whether advice on a bucket equals that on a disk, and its cost."""
    ranks, count = min(RANKS, most_ranks), min(FILES, most_ranks - 2)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path = Path(folder, "job")
        path.mkdir()
        for file in sorted(made(ranks, SIZE_MB).iterdir())[:count]:
            os.link(file, path / file.name)
        with server() as environment:
            _upload(path, environment)
            disk, remote = Path(folder, "disk.json"), Path(folder, "s3.json")
            on_disk = advise(path, disk)
            from_bucket = advise("s3://logs/job", remote, **environment)
            yield condition(
                "s3/same",
                f"{count} files: the same report from S3 (moto) as from disk",
                holds=plain(disk) == plain(remote),
            )
            text = f"{count} files of {SIZE_MB:g} MB: wall time"
            yield Figure(key="s3/disk", text=f"{text}, disk", value=on_disk.seconds, unit="s")
            yield Figure(key="s3/s3", text=f"{text}, S3", value=from_bucket.seconds, unit="s")
            _fill(environment)
            seconds = measured(
                of_module("benchmarks.scale_subjects", "listing", "s3://many"), environment
            ).seconds
    yield _listing("bucket, moto", seconds, LISTED_IN_BUCKET)


def _upload(path: Path, environment: Mapping[str, str]) -> None:
    script = (
        "import sys, s3fs; s3 = s3fs.S3FileSystem(); s3.mkdir('logs');"
        "s3.put(sys.argv[1], 'logs/job', recursive=True)"
    )
    subprocess.run(
        [sys.executable, "-c", script, f"{path}/"], env={**os.environ, **environment}, check=True
    )


def _fill(environment: Mapping[str, str]) -> None:
    script = (
        "import sys, s3fs; s3 = s3fs.S3FileSystem(); s3.mkdir('many');"
        "s3.pipe({f'many/{n // 1000}/w{n}.1.pt.trace.json.gz': b'x'"
        " for n in range(int(sys.argv[1]))})"
    )
    command = [sys.executable, "-c", script, str(LISTED_IN_BUCKET)]
    subprocess.run(command, env={**os.environ, **environment}, check=True)


def folder_listing() -> Iterator[Figure]:
    """Yield the time of listing a large folder of runs."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        for run in range(LISTED // RUN):
            Path(folder, str(run)).mkdir()
            for number in range(RUN):
                Path(folder, str(run), f"w{number}.1.pt.trace.json.gz").touch()
        command = of_module("benchmarks.scale_subjects", "listing", folder)
        yield _listing("folder", measured(command).seconds, LISTED)


def _listing(where: str, seconds: Mapping[str, float], count: int) -> Figure:
    assert seconds["count"] == count
    return Figure(
        key=f"listing/{where.partition(',')[0]}",
        text=f"Listing 1,000 objects of {count:,} ({where})",
        value=1e6 * seconds["listed"] / count,
        unit="ms",
    )


def plain(file: Path) -> str:
    """Return a report with names in place of ids, since ids depend on paths."""
    text = file.read_text(encoding="utf-8")
    for run in json.loads(text)["runs"]:
        for worker in run["workers"]:
            text = text.replace(worker["trace"], f"{worker['name']}, span {worker['span']}")
    return text
