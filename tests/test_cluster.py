"""A real Dask scheduler and real workers read files; whatever becomes of them, it is answered."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import cluster_tasks
import reader_tasks
from cluster_tasks import orders_of
from dask_cluster import ROOT, LocalCluster, local_cluster
from logs import write_run, write_trace
from programs import running
from stepscope.api.catalog_factory import catalog_for
from stepscope.base.config import Settings
from stepscope.base.errors import UnreadableError
from stepscope.catalog.file_state import Summarised
from stepscope.catalog.log_directories import LogDirectory
from stepscope.cli import cli, file_reading
from stepscope.readers.batch import Outcome, read_all
from stepscope.readers.cluster import Cluster, NoClusterError, Timeouts, connection
from stepscope.readers.cluster.replies import CannotOpen
from stepscope.readers.cluster.session import Session
from stepscope.readers.cluster.task import RemoteRequest
from stepscope.readers.cluster.workers import Workers
from stepscope.readers.pool import InProcessReader
from stepscope.readers.requests import (
    CancelledError,
    OnProgress,
    ReadProgress,
    ReadRequest,
    ReadResult,
    Stop,
)
from stepscope.storage import discover
from waiting import LONG_SECONDS, until

pytestmark = pytest.mark.slow

ASK = """
import signal
import sys
from functools import partial
import cluster_tasks
from stepscope.readers.cluster import Cluster
signal.signal(signal.SIGINT, signal.default_int_handler)
there = Cluster(sys.argv[1])
waiting = partial(cluster_tasks.waiting, folder=sys.argv[3])
marking = partial(cluster_tasks.marking, folder=sys.argv[3])
there.read_all(cluster_tasks.orders_of(sys.argv[2], waiting, marking))
"""
"""A program that has a cluster read, and is ended in the middle.

Who runs the tests in the background has Ctrl-C ignored, and children inherit that.
"""
LIMITED = ("--memory-limit", "800MiB")
PATIENT = Timeouts(
    connect_seconds=LONG_SECONDS,
    again_seconds=LONG_SECONDS,
    workers_seconds=LONG_SECONDS,
    silent_seconds=LONG_SECONDS,
)
"""With a machine that does much else."""
SOON = Timeouts(connect_seconds=2, workers_seconds=2, silent_seconds=5, look_seconds=0.2)
"""Where the cluster is known to be gone, or will be."""
RANKS = tuple(f"rank{number}" for number in range(8))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Two workers that are started again where they are killed."""
    with local_cluster(tmp_path_factory.mktemp("dask"), LIMITED, LIMITED) as cluster:
        until(lambda: len(cluster.process_ids()) == 2)
        yield cluster


@pytest.fixture(scope="module")
def reader(pair: LocalCluster) -> Iterator[Cluster]:
    with reader_of(pair) as reader:
        yield reader


@contextmanager
def reader_of(cluster: LocalCluster, timeouts: Timeouts = PATIENT) -> Iterator[Cluster]:
    with closing(Cluster(cluster.address, timeouts=timeouts)) as reader:
        yield reader


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of some ranks."""
    return write_run(tmp_path / "log" / "run", *RANKS)


def answers(outcomes: tuple[Outcome, ...]) -> list[Any]:
    return [
        outcome.prepared if isinstance(outcome, ReadResult) else outcome for outcome in outcomes
    ]


def one_answer(reader: Cluster, order: ReadRequest, tell: OnProgress = lambda _: None) -> Any:
    return reader.read(order, tell, Stop()).prepared


def begun(folder: Path) -> dict[str, int]:
    """Which recordings `cluster_tasks.waiting` has begun, and who reads each."""
    names = [path.name.rpartition(".") for path in folder.glob("rank*.*")]
    return {worker: int(process) for worker, _, process in names}


def test_a_cluster_answers_as_this_process_does(reader: Cluster, run: Path) -> None:
    orders = orders_of(run, cluster_tasks.judged)
    assert reader.read_all(orders) == read_all(orders, InProcessReader(), jobs=1)


def test_workers_read_and_the_answers_are_in_the_orders_order(
    reader: Cluster, pair: LocalCluster, run: Path
) -> None:
    found = answers(reader.read_all(orders_of(run, cluster_tasks.named)))
    assert [name for name, _ in found] == list(RANKS)
    assert {process for _, process in found} <= pair.process_ids()


def test_a_relative_path_is_the_same_file_for_a_worker(
    reader: Cluster, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.parent)
    (order, *_) = orders_of("run", cluster_tasks.judged)
    assert order.file.path == "run/rank0.1700000000000.pt.trace.json.gz"
    assert one_answer(reader, order).path == order.file.path


def test_it_is_told_how_far_a_reading_is(reader: Cluster, run: Path) -> None:
    told: list[ReadProgress] = []
    (order, *_) = orders_of(run, cluster_tasks.judged, cluster_tasks.again)
    one_answer(reader, order, told.append)
    phases = list(dict.fromkeys(each.phase for each in told))
    assert phases[:1] == ["waiting"]
    assert set(phases) <= {"waiting", "reading", "analysing", "advising"}
    assert told[0].bytes_total == order.file.listed.size_bytes if order.file.listed else None


def test_a_damaged_file_costs_itself(reader: Cluster, run: Path) -> None:
    write_trace(run / "rank2.1700000000000.pt.trace.json.gz").write_bytes(b"nonsense")
    orders = orders_of(run, cluster_tasks.named)
    found = reader.read_all(orders)
    here = read_all(orders, InProcessReader(), jobs=1)
    assert str(found[2]) == str(here[2])
    assert isinstance(found[2], UnreadableError)
    assert [each[0] for each in answers(found) if isinstance(each, tuple)] == [
        *RANKS[:2], *RANKS[3:]
    ]  # fmt: skip


def test_a_defect_is_told_with_where_it_was_raised(reader: Cluster, run: Path) -> None:
    (outcome, *_) = reader.read_all(orders_of(run, reader_tasks.failing)[:1])
    assert isinstance(outcome, UnreadableError)
    assert "ZeroDivisionError" in outcome.message
    assert "reader_tasks.py" in str(outcome.__cause__)


def test_a_file_that_says_that_it_needs_more_than_a_worker_has_is_refused(
    reader: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "run" / "rank0.1700000000000.pt.trace.json"
    path.parent.mkdir()
    with path.open("wb") as stream:
        stream.truncate(20 * 2**30)
    (outcome,) = reader.read_all(orders_of(path, cluster_tasks.judged))
    assert isinstance(outcome, UnreadableError)
    assert "it needs more than 6.00 GiB of memory" in outcome.message
    assert "dask worker --memory-limit" in outcome.remedy


def test_a_file_that_takes_more_than_a_worker_has_costs_itself(reader: Cluster, run: Path) -> None:
    (order, other, *_) = orders_of(run, reader_tasks.greedy)
    (kind,) = orders_of(other.file.path, cluster_tasks.judged)
    outcome, answer = reader.read_all([order, kind])
    assert isinstance(outcome, UnreadableError)
    assert "This needs more memory than the" in outcome.message
    assert "dask worker --memory-limit" in outcome.remedy
    assert isinstance(answer, ReadResult)


def test_a_recording_does_not_travel(reader: Cluster, run: Path) -> None:
    (file, *_) = discover.at(str(run))
    with pytest.raises(ValueError, match="not the trace"):
        reader.read(ReadRequest(file=file), lambda _: None, Stop())


def test_what_is_cancelled_ends_where_it_tells_the_next_time(
    reader: Cluster, pair: LocalCluster, run: Path, tmp_path: Path
) -> None:
    folder = str(tmp_path)
    first = partial(cluster_tasks.waiting, folder=folder)
    (order, *_) = orders_of(run, first, partial(cluster_tasks.marking, folder=folder))
    stop = Stop()

    def cancel() -> None:
        until(lambda: begun(tmp_path))
        stop.set()

    threading.Thread(target=cancel).start()
    with pytest.raises(CancelledError):
        reader.read(order, lambda _: None, stop)
    ends(pair, reader, run, tmp_path)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_read_for_one_who_has_gone(
    how: signal.Signals, reader: Cluster, pair: LocalCluster, run: Path, tmp_path: Path
) -> None:
    paths = filter(None, (str(ROOT / "tests"), os.environ.get("PYTHONPATH")))
    with running(
        [sys.executable, "-c", ASK, pair.address, str(run), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stderr=subprocess.DEVNULL,
    ) as asking:
        until(lambda: len(begun(tmp_path)) == 2)
        asking.send_signal(how)
        assert asking.wait(LONG_SECONDS) != 0
    ends(pair, reader, run, tmp_path)


def ends(cluster: LocalCluster, reader: Cluster, run: Path, folder: Path) -> None:
    """See that the readings that wait end, and that nothing more of them is done."""
    until(lambda: not cluster.has_orders())
    (folder / "go").touch()
    orders = orders_of(run, cluster_tasks.named)
    found: set[int] = set()

    def has_time_again() -> bool:
        found.update(process for _, process in answers(reader.read_all(orders)))
        return set(begun(folder).values()) <= found

    until(has_time_again)
    assert not list(folder.glob("*.second"))


def test_the_file_of_a_worker_that_is_killed_is_read_by_another(
    reader: Cluster, run: Path, tmp_path: Path
) -> None:
    orders = orders_of(run, partial(cluster_tasks.waiting, folder=str(tmp_path)))

    def kill() -> None:
        until(lambda: len(begun(tmp_path)) == 2)
        os.kill(begun(tmp_path)[RANKS[0]], signal.SIGKILL)
        (tmp_path / "go").touch()

    threading.Thread(target=kill).start()
    assert answers(reader.read_all(orders)) == list(RANKS)


EVERYWHERE = ("one process", "several processes", "the cluster")
SAMPLES = ("ranks/one_slow_rank", "dataloader/two_workers", "synthetic_tiny_batch/fault")


def asked(
    pair: LocalCluster, monkeypatch: pytest.MonkeyPatch, where: str, *arguments: str
) -> Result:
    """Ask a command in one of these ways."""
    is_pool = where == "several processes"
    monkeypatch.setattr(file_reading, "_is_worth_processes", lambda _: is_pool)
    there = ("--scheduler", pair.address) if where == "the cluster" else ()
    result = CliRunner().invoke(cli, [*arguments, *there], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize(
    ("command", "names", "options"),
    [
        ("advise", SAMPLES, ("--format", "json")),
        ("health", SAMPLES, ("--format", "json")),
        ("compare", ("dataloader/no_workers", "dataloader/two_workers"), ("--format", "json")),
        ("scalars", SAMPLES, ()),
        ("whatif", SAMPLES[:1], ("--ranks-alike", "--format", "json")),
    ],
)
def test_a_command_says_the_same_wherever_it_reads(
    command: str,
    names: tuple[str, ...],
    options: tuple[str, ...],
    pair: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = [str(ROOT / "sample_logs" / name) for name in names]
    said = {
        asked(pair, monkeypatch, where, command, *paths, *options).stdout for where in EVERYWHERE
    }
    assert len(said) == 1


def test_tables_are_the_same_wherever_they_are_made(
    pair: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / "sample_logs")
    tables = ("operators", "steps", "kernels", "ranks", "trends")
    wanted = [word for name in tables for word in ("--table", name)]
    files = []
    for where in EVERYWHERE:
        folder = tmp_path / where
        asked(pair, monkeypatch, where, "export", *SAMPLES, *wanted, "-o", f"{folder}/")
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert list(files[0]) != []
    assert files[0] == files[1] == files[2]


def test_a_server_has_the_cluster_read_what_is_kept_of_recordings(
    reader: Cluster, run: Path
) -> None:
    directories = [LogDirectory(path=str(run.parent), name="")]
    catalog = catalog_for(directories, Settings(), None, reader)
    catalog.scan()
    catalog.start_reading()
    until(lambda: all(entry.facts is not None for entry in catalog.entries()))
    catalog.close()
    assert {entry.state for entry in catalog.entries()} == {Summarised()}


def test_a_file_that_kills_whoever_reads_it_costs_itself(reader: Cluster, run: Path) -> None:
    found = answers(reader.read_all(orders_of(run, partial(cluster_tasks.killing, worker="rank3"))))
    assert [each for each in found if isinstance(each, str)] == [
        rank for rank in RANKS if rank != "rank3"
    ]
    assert isinstance(found[3], UnreadableError)
    assert "killed" in found[3].message


@pytest.mark.parametrize("seed", range(10))
def test_a_kill_at_any_moment_changes_no_answer(
    seed: int, reader: Cluster, pair: LocalCluster, run: Path
) -> None:
    until(lambda: len(pair.process_ids()) == 2)
    dice = random.Random(seed)  # noqa: S311
    orders = orders_of(run, cluster_tasks.judged)
    left = dice.randrange(3 * len(orders))
    victim = dice.choice(sorted(pair.process_ids()))

    @contextmanager
    def monitor(_: ReadRequest) -> Iterator[OnProgress]:
        yield tell

    def tell(_: ReadProgress) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            with suppress(ProcessLookupError):  # it was ended since it was asked for its number
                os.kill(victim, signal.SIGKILL)

    assert reader.read_all(orders, monitor=monitor) == read_all(orders, InProcessReader(), jobs=1)


def test_a_worker_that_nobody_starts_again_is_not_missed(run: Path, tmp_path: Path) -> None:
    alone = ("--no-nanny",)
    with local_cluster(tmp_path, alone, alone) as cluster, reader_of(cluster) as reader:
        until(lambda: len(cluster.process_ids()) == 2)
        orders = orders_of(run, partial(cluster_tasks.waiting, folder=str(tmp_path)))

        def kill() -> None:
            until(lambda: len(begun(tmp_path)) == 2)
            os.kill(begun(tmp_path)[RANKS[1]], signal.SIGKILL)
            (tmp_path / "go").touch()

        threading.Thread(target=kill).start()
        assert answers(reader.read_all(orders)) == list(RANKS)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_without_the_scheduler_what_was_read_is_answered(
    how: signal.Signals, run: Path, tmp_path: Path
) -> None:
    with local_cluster(tmp_path, ("--no-nanny",)) as cluster:
        scheduler = cluster.scheduler
        assert scheduler is not None
        first, *_ = orders_of(run, cluster_tasks.named)
        _, *others = orders_of(run, partial(cluster_tasks.waiting, folder=str(tmp_path)))

        has_first = threading.Event()

        @contextmanager
        def monitor(order: ReadRequest) -> Iterator[OnProgress]:
            yield lambda _: None
            if order is first:
                has_first.set()

        def kill() -> None:
            until(lambda: begun(tmp_path) and has_first.is_set())
            scheduler.send_signal(how)

        threading.Thread(target=kill).start()
        with reader_of(cluster, replace(PATIENT, again_seconds=1, silent_seconds=20)) as reader:
            found = answers(reader.read_all([first, *others], monitor=monitor))
    assert found[0][0] == RANKS[0]
    for each in found[1:]:
        assert isinstance(each, UnreadableError)
        assert "scheduler" in each.message
        assert "was lost" in each.message
        assert "Start it again" in each.remedy


def test_a_scheduler_that_does_not_answer_is_told(tmp_path: Path) -> None:
    there = Cluster("127.0.0.1:1", timeouts=SOON)
    with closing(there), pytest.raises(NoClusterError) as told:
        there.connect()
    start, reason = told.value.message.split("tcp://127.0.0.1:1: ")
    assert start == "No Dask scheduler responds at "
    late = "Timed out trying to connect to tcp://127.0.0.1:1 after 2 s."  # in the middle of a try
    assert reason in {"[Errno 111] Connection refused.", late}
    missing = Cluster(str(tmp_path / "none.json"), timeouts=SOON)
    with closing(missing), pytest.raises(NoClusterError, match="is not a Dask scheduler file"):
        missing.connect()


def test_a_try_that_is_cut_short_is_no_reason() -> None:
    late = OSError("Timed out trying to connect to tcp://a:1 after 2 s")
    late.__cause__ = TimeoutError()
    late.__cause__.__cause__ = asyncio.CancelledError()
    told = connection._no_scheduler("a:1", "tcp://a:1", late)  # noqa: SLF001
    assert told.message == f"No Dask scheduler responds at tcp://a:1: {late}."


def test_without_dask_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    there = Cluster("127.0.0.1:1")
    with closing(there), pytest.raises(NoClusterError, match=r"pip install 'stepscope\[dask\]'"):
        there.connect()


def test_workers_without_our_stepscope_are_not_asked(run: Path, tmp_path: Path) -> None:
    other, without = tmp_path / "other", tmp_path / "without"
    (other / "stepscope-0.0.1.dist-info").mkdir(parents=True)
    about = "Metadata-Version: 2.1\nName: stepscope\nVersion: 0.0.1\n"
    (other / "stepscope-0.0.1.dist-info" / "METADATA").write_text(about)
    without.mkdir()
    (without / "sitecustomize.py").write_text(
        "import importlib.metadata as known, sys\n"
        "sys.modules['stepscope'] = None\n"
        "version = known.version\n"
        "def told(name):\n"
        "    if name == 'stepscope': raise known.PackageNotFoundError(name)\n"
        "    return version(name)\n"
        "known.version = told\n"
    )
    said: list[str] = []
    with local_cluster(tmp_path) as cluster:
        alone = Cluster(cluster.address, say=said.append, timeouts=SOON)
        with closing(alone), pytest.raises(NoClusterError, match="has had no worker for 2 s"):
            alone.connect()
        assert said == [f"waiting for workers at {cluster.address} ..."]
        for place in (other, without):
            cluster.start_worker("--no-nanny", environment={"PYTHONPATH": str(place)})
        unfit = Cluster(cluster.address, say=said.append, timeouts=PATIENT)
        with closing(unfit), pytest.raises(NoClusterError, match=r"No worker .* is usable"):
            unfit.connect()
        cluster.start_worker("--no-nanny")
        until(lambda: len(cluster.process_ids()) == 3)
        with closing(Cluster(cluster.address, say=said.append, timeouts=PATIENT)) as reader:
            found = answers(reader.read_all(orders_of(run, cluster_tasks.named)))
        assert [name for name, _ in found] == list(RANKS)
        assert len({process for _, process in found}) == 1
        assert any(each.endswith(f"it has stepscope 0.0.1, not {_version()}") for each in said)
        assert any(each.endswith("it has no stepscope") for each in said)


def _version() -> str:
    from importlib.metadata import version

    return version("stepscope")


def test_a_machine_without_the_mount_is_passed_over(tmp_path: Path) -> None:
    run = write_run(tmp_path / "log" / "run", *RANKS)
    hide = f"mount -t tmpfs tmpfs {tmp_path / 'log'}"
    if subprocess.run(
        ["unshare", "-m", "sh", "-c", hide], capture_output=True, check=False
    ).returncode:
        pytest.skip("this user may not hide a folder from a process (unshare, mount)")
    said: list[str] = []
    with local_cluster(tmp_path, ("--no-nanny",)) as cluster:
        blind = ("unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh")
        cluster.start_worker("--no-nanny", before=blind)
        with closing(Cluster(cluster.address, say=said.append, timeouts=PATIENT)) as reader:
            until(lambda: len(cluster.process_ids()) == 2)
            found = answers(reader.read_all(orders_of(run, cluster_tasks.named) * 3))
            assert [name for name, _ in found] == [*RANKS] * 3
            assert len({process for _, process in found}) == 1
            (told,) = [each for each in said if "is no longer used" in each]
            assert "(No such file or directory), but others can" in told
            (order, *_) = orders_of(run, cluster_tasks.named)
            Path(order.file.path).unlink()
            (outcome,) = reader.read_all([order])
    assert isinstance(outcome, UnreadableError)
    assert outcome.message.startswith(
        "None of the 2 workers that tried can open this: No such file or directory (tcp://"
    )
    assert outcome.remedy.startswith(f"Mount {run} at the same path on the workers")


def refusal(worker: str) -> CannotOpen:
    return CannotOpen(host="node", worker=worker, reason="No such file or directory")


def test_who_refuses_twice_what_others_read_is_asked_for_no_more() -> None:
    workers = Workers(threads={"tcp://a:1": 1, "tcp://b:1": 1, "tcp://c:1": 2})
    assert workers.slots == 8
    assert workers.candidates([]) is None
    assert workers.candidates(["tcp://a:1"]) == ["tcp://b:1", "tcp://c:1"]
    assert workers.count_refusals([refusal("tcp://a:1")]) == []
    assert workers.count_refusals([refusal("tcp://a:1")]) == [refusal("tcp://a:1")]
    assert workers.candidates([]) == ["tcp://b:1", "tcp://c:1"]


def test_where_nobody_else_is_left_who_refused_is_asked_again() -> None:
    workers = Workers(threads={"tcp://a:1": 1})
    for _ in range(3):
        workers.count_refusals([refusal("tcp://a:1")])
    assert workers.candidates([]) is None
    assert workers.candidates(["tcp://a:1"]) == []


def test_another_machine_is_asked_before_another_worker_of_the_same() -> None:
    workers = Workers(threads={"tcp://a:1": 1, "tcp://a:2": 1, "tcp://b:1": 1})
    assert workers.candidates(["tcp://a:1"]) == ["tcp://b:1"]
    assert workers.candidates(["tcp://a:1", "tcp://b:1"]) == ["tcp://a:2"]


def test_who_is_unfit_is_not_counted() -> None:
    workers = Workers()
    assert workers.update({"tcp://a:1": 4, "tcp://b:1": 4}) == ["tcp://a:1", "tcp://b:1"]
    workers.unfit["tcp://a:1"] = "no stepscope"
    assert (workers.slots, workers.candidates([])) == (8, ["tcp://b:1"])
    assert workers.update({"tcp://b:1": 4}) == []
    assert workers.candidates([]) is None


def test_a_worker_that_does_not_tell_its_version_is_asked_again_and_ends_nothing() -> None:
    class Scheduler:
        """One whose worker is silent at first."""

        asked_count = 0

        async def ncores(self) -> dict[str, int]:
            return {"tcp://a:1": 2}

        async def broadcast(self, **_: object) -> dict[str, Any]:
            self.asked_count += 1
            await asyncio.sleep(LONG_SECONDS if self.asked_count == 1 else 0)
            return {"tcp://a:1": {"packages": {"stepscope": None}}}

    async def looks() -> list[dict[str, int]]:
        client: Any = SimpleNamespace(scheduler=Scheduler())
        session = Session("tcp://s:1", client, Timeouts(silent_seconds=0.2), lambda _: None)
        found = []
        for _ in range(2):
            await session._check_workers()  # noqa: SLF001 (a watch would take as long as it does)
            found.append(session.workers.threads)
        assert session.workers.unfit == {"tcp://a:1": "no stepscope"}
        return found

    with ThreadPoolExecutor(1) as apart:  # a browser's tests may have a loop of their own here
        assert apart.submit(lambda: asyncio.run(looks())).result() == [{}, {"tcp://a:1": 2}]


def test_what_dask_logs_of_a_task_holds_no_secret() -> None:
    parcel = RemoteRequest(
        version="1", request=b"geheim", path="https://u:geheim@host/w.pt.trace.json"
    )
    assert "geheim" not in repr(parcel)
