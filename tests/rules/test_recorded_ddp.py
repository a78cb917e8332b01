"""DistributedDataParallel, recorded here by two ranks over gloo: each setting and its opposite."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loading import trace_at
from stepscope.advice import rule_outcomes
from stepscope.base.findings import Outcome
from stepscope.rules import Rule
from stepscope.rules.ddp_bucket_copy import RULE as COPIES
from stepscope.rules.ddp_buffer_broadcast import RULE as BUFFERS
from stepscope.rules.ddp_find_unused_parameters import RULE as SEARCHES
from stepscope.rules.ddp_missing_no_sync import RULE as ACCUMULATION
from stepscope.rules.small_collectives import RULE as BUCKETS
from waiting import LONG_SECONDS

pytest.importorskip("torch")
pytestmark = pytest.mark.recording
RECORDER = Path(__file__).parent / "ddp_recorder.py"
STEPS, PASSES, PARAMETERS = 3, 3, 16


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ddp")
    ranks = [
        subprocess.Popen(
            [sys.executable, str(RECORDER), str(rank), str(folder / "meeting"), str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    for rank in ranks:
        _, told = rank.communicate(timeout=LONG_SECONDS * 4)
        assert rank.returncode == 0, told.decode()
    return folder


def said(recordings: Path, name: str, rule: Rule[Any]) -> Outcome:
    [outcome] = rule_outcomes(trace_at(recordings / f"{name}.json"), [rule])
    return outcome


def values(outcome: Outcome) -> dict[str, Any]:
    # how long it took is the machine's affair; that it was seen, and how often, is not
    assert outcome.status in ("found", "rejected"), outcome
    return {each.label: each.value for each in outcome.evidence}


def test_searches_for_unused_parameters_are_counted_with_their_all_reduces(
    recordings: Path,
) -> None:
    seen = values(said(recordings, "searching", SEARCHES))
    assert (seen["Searches in total"], seen["All-reduces of the result in total"]) == (STEPS, STEPS)
    assert said(recordings, "default", SEARCHES).status == "passed"


def test_gradients_that_are_views_of_buckets_are_not_copied(recordings: Path) -> None:
    assert values(said(recordings, "default", COPIES))["Copies in total"] == STEPS * PARAMETERS
    assert said(recordings, "views", COPIES).status == "passed"


def test_small_buckets_are_more_than_the_default_would_be(recordings: Path) -> None:
    # 8 * 66 kB: one bucket a layer, where one of 1 MiB and another of 25 would do
    seen = values(said(recordings, "small_buckets", BUCKETS))
    assert seen["Times DDP's default buckets"] >= BUCKETS.options.least_bucket_ratio
    assert said(recordings, "default", BUCKETS).status == "passed"


def test_buffers_are_sent_before_every_forward(recordings: Path) -> None:
    # running mean and variance in one message, the count of batches in another
    assert values(said(recordings, "buffers", BUFFERS))["Broadcasts in total"] == 2 * STEPS
    assert said(recordings, "no_buffers", BUFFERS).status == "passed"


def test_accumulated_gradients_need_no_reduction_but_the_last(recordings: Path) -> None:
    seen = values(said(recordings, "accumulated", ACCUMULATION))
    assert seen["Forward passes in total"] == STEPS * PASSES
    assert seen["Passes without, but reduced, in total"] == STEPS * (PASSES - 1)
    assert said(recordings, "accumulated_without_sync", ACCUMULATION).status == "passed"
