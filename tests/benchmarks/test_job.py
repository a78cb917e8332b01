"""A synthetic job: its files are traces as torch writes them, and consistent."""

import gzip
from pathlib import Path

import pytest

from benchmarks import job as jobs
from benchmarks.job_plan import Job
from benchmarks.job_times import COMM, Clocks, play
from loading import trace_at
from stepscope.analyses.health import health
from stepscope.model.trace import Trace
from stepscope.storage import discover

RANKS, SIZE_MB = 16, 0.2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small job's folder."""
    return jobs.job(RANKS, SIZE_MB, tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    """The trace of rank 3."""
    return trace_at(folder / Job(rank_count=RANKS).file_name(3))


def test_all_ranks_but_the_missing_ones_have_a_file(folder: Path) -> None:
    true = Job(rank_count=RANKS)
    workers = {file.worker for file in discover.in_folder(str(folder))}
    assert workers == {true.worker(rank) for rank in range(RANKS)} - {
        true.worker(rank) for rank in true.missing
    }
    with pytest.raises(EOFError):
        gzip.decompress((folder / true.file_name(true.damaged)).read_bytes())


def test_the_faults_are_in_different_ranks() -> None:
    for count in (16, 32, 64, 128, 256, 512, 1024):
        true = Job(rank_count=count)
        assert len({true.straggler, *true.missing, true.damaged}) == 4
        assert max(true.straggler, *true.missing, true.damaged) < count


def test_a_count_that_the_mesh_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="100: a job has a multiple of 16 ranks, of 64 from 256"):
        Job(rank_count=100)


def test_every_rank_is_in_one_group_per_kind() -> None:
    true = Job(rank_count=256)
    for kind, sizes in (("tp", 8), ("pp", 4), ("dp", 8), ("mp", 32), ("cp", 2), ("tp_dp", 64)):
        for rank in (0, 77, 255):
            members = true.members(kind, rank)
            assert rank in members
            assert len(members) == sizes, kind
            assert {true.group_name(kind, member) for member in members} == {
                true.group_name(kind, rank)
            }
    assert true.members("world", 5) == list(range(256))


def test_no_rank_leaves_a_collective_before_all_of_its_group_have_come() -> None:
    true, turns = jobs.planned(64, SIZE_MB)
    clocks = play(true, turns)
    for step in range(true.step_count):
        for at, turn in enumerate(turns):
            if turn.segment.collective is None:
                continue
            clock = Clocks.of_turn(step, len(turns), at, COMM)
            came = clocks.base_ns[:, clock]
            left = came + clocks.scale[:, clock]
            group_of = true.groups[turn.segment.collective.group]
            for group in range(group_of.max() + 1):
                assert left[group_of == group].min() > came[group_of == group].max()


def test_a_recording_is_whole(trace: Trace) -> None:
    assert [item.kind for item in health(trace)] == ["no-memory"]
    assert len(trace.steps) == Job.step_count
    assert trace.rank == 3


def test_work_begins_on_the_device_behind_its_launch(trace: Trace) -> None:
    calls = trace.runtime_calls.set_index("correlation")
    kernels = trace.kernels
    launches = calls.loc[kernels["correlation"]]
    assert len(kernels) > 100
    assert (kernels["start_ns"].to_numpy() > launches["end_ns"].to_numpy()).all()


def test_a_stream_does_one_thing_after_the_other(trace: Trace) -> None:
    for _, kernels in trace.kernels.groupby("stream"):
        ordered = kernels.sort_values("start_ns")
        assert (ordered["start_ns"].to_numpy()[1:] >= ordered["end_ns"].to_numpy()[:-1]).all()


def test_collectives_say_whose_they_are(trace: Trace) -> None:
    true = Job(rank_count=RANKS)
    frame = trace.collectives
    assert frame["is_timed"].all()
    groups = set(zip(frame["group"], frame["group_ranks"], strict=True))
    assert groups == {
        (true.group_name(kind, 3), str(true.members(kind, 3)).replace(" ", ""))
        for kind in true.groups
    }
    for _, calls in frame.groupby("group", observed=True):
        assert calls["sequence"].tolist() == list(range(1, len(calls) + 1))
