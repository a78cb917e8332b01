"""Ranks of a job that say nothing: not recorded, or in a file that cannot be read."""

from dataclasses import replace

import pytest

from benchmarks.cross_rank import advice
from rankparts import parts_of, shape
from stepscope.advice import run_report
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import missing_ranks, rank_run

pytestmark = pytest.mark.frames

LOST, CUT = {7, 38}, 60
CUT_NAME = "rank60.pt.trace.json.gz"


@pytest.fixture(scope="module")
def parts() -> list[RankSummary]:
    """Sixty-four ranks, of which two were not recorded and one file was cut."""
    job = shape(64, step_count=2)
    return [part for at, part in enumerate(parts_of(job)) if at not in LOST | {CUT}]


def test_a_file_that_cannot_be_read_is_told_from_one_that_is_not_there(
    parts: list[RankSummary],
) -> None:
    found = missing_ranks(rank_run(parts), [CUT_NAME, "notes.json"])
    assert (found.world_size, found.source) == (64, "header")
    assert (found.missing, found.unreadable) == ((7, 38), (60,))
    assert found.nameless == ("notes.json",)


@pytest.mark.parametrize(
    ("group_count", "size", "source"), [(9, 64, "process groups"), (0, 62, "ranks")]
)
def test_without_a_header_groups_tell_the_size_or_else_the_highest_rank(
    parts: list[RankSummary], group_count: int, size: int, source: str
) -> None:
    known = [
        replace(part, world_size=None, groups=part.groups[:group_count])
        for part in parts
        if part.evidence.header not in {62, 63}
    ]
    found = missing_ranks(rank_run(known))
    assert (found.world_size, found.source) == (size, source)


def test_where_a_recordings_own_rank_is_not_known_none_is_named(parts: list[RankSummary]) -> None:
    nameless = replace(parts[5].evidence, header=None, device=None, name="odd", worker="odd")
    found = missing_ranks(rank_run([*parts[:5], replace(parts[5], evidence=nameless)]))
    assert (found.missing, found.unreadable) == ((), ())


def test_while_files_are_still_to_be_read_none_is_called_missing(parts: list[RankSummary]) -> None:
    recordings = [advice(part) for part in parts]
    report = run_report("job", recordings, unreadable=[CUT_NAME], awaited_count=2)
    [said] = [each for each in report.outcomes if each.rule == "missing-ranks"]
    assert (said.status, said.reason) == ("cannot-tell", "2 files of the run are not read yet")


def test_the_advice_names_them(parts: list[RankSummary]) -> None:
    report = run_report("job", [advice(part) for part in parts], unreadable=[CUT_NAME])
    [found] = [each for each in report.outcomes if each.rule == "missing-ranks"]
    assert found.message == (
        "Ranks 7 and 38 have no trace and the file of rank 60 cannot be read, of 64 ranks."
        " In 13 process groups the reported waiting is a lower bound: the rank that came last may"
        " be one of them."
    )
