"""Figures across ranks beside torch-tb-profiler's, of two real ranks over gloo.

Its collectives on devices are lost since torch 1.12 (`test_collectives.py`), gloo's are not.
"""

import logging
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from loading import ROOT, trace_at
from stepscope.analyses.communication.matched_collectives import matched_collectives
from stepscope.analyses.communication.rank_summary import rank_summary
from stepscope.analyses.communication.rank_table import rank_table
from stepscope.analyses.core.exposed_communication import exposure
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.steps.step_breakdown import step_breakdown

pytest.importorskip("torch_tb_profiler")
pytestmark = [pytest.mark.peer, pytest.mark.slow]

US = 1000
RUNS = ("one_slow_rank", "balanced")
CLOSE_US = 0.5
"""It reckons with floats of microseconds since Unix time 0: they hold a quarter of one."""
LATE_ENDS = 0.02
"""Fraction of the time that gloo's threads recorded late, which the peer takes as it is."""


def _paths(run: str) -> list[Any]:
    return sorted((ROOT / "sample_logs/ranks" / run).glob("*.gz"))


@cache
def _theirs(run: str) -> Any:
    """What the peer makes of both ranks together."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        # its modules import in this order only
        import torch_tb_profiler.profiler  # noqa: F401
        from torch_tb_profiler.profiler.data import DistributedRunProfileData, RunProfileData
        from torch_tb_profiler.profiler.loader import RunLoader

        logging.getLogger("torch_tb_profiler").setLevel(logging.CRITICAL)
        ranks = [
            DistributedRunProfileData(
                RunProfileData.parse(path.name.split(".")[0], 1, str(path), folder)
            )
            for path in _paths(run)
        ]
        loader = RunLoader(run, folder, None)
        together: Callable[..., Any] = loader._process_distributed_profiles  # noqa: SLF001
        return together(ranks, 1)


@pytest.mark.parametrize("run", RUNS)
def test_transfer_waiting_and_bytes_are_the_peers(run: str) -> None:
    """Times are shorter where gloo's thread recorded an end late."""
    parts = [rank_summary(trace_at(path)) for path in _paths(run)]
    matched = matched_collectives(parts)
    for part in parts:
        own = part.collectives
        [row] = _theirs(run).comm_ops["data"][part.evidence.worker]["rows"]
        name, calls, total_bytes, _, latency_us, _, transfer_us, _ = row
        assert name == "gloo:all_reduce"
        assert calls == len(own) == len(matched)
        assert total_bytes == own.message_bytes.sum()
        assert own.duration_ns.sum() / US == pytest.approx(latency_us, rel=LATE_ENDS)
        own_us = matched["transfer_ns"].sum() / US
        assert own_us <= transfer_us + CLOSE_US * calls
        assert own_us == pytest.approx(transfer_us, rel=LATE_ENDS, abs=CLOSE_US * calls)
    for row in rank_table(parts).to_dict("records"):
        all_us = row["wait_ns"] * row["step_count"] / US
        peers_us = sum(_waits_us(run)[row["worker"]])
        assert all_us <= peers_us + CLOSE_US * 6
        assert all_us == pytest.approx(peers_us, rel=LATE_ENDS, abs=CLOSE_US * 6)


def _waits_us(run: str) -> dict[str, list[float]]:
    """How long each rank waited in each step."""
    waits: dict[str, list[float]] = {}
    for step, of_ranks in _theirs(run).steps_to_wait["data"].items():
        for worker, (_, waited_us) in of_ranks.items():
            if step != "all":
                waits.setdefault(worker, []).append(waited_us)
    return waits


@pytest.mark.parametrize("run", RUNS)
def test_as_much_of_each_step_computed_communicated_or_did_both(run: str) -> None:
    """Without a device, operators of the host are what computes; a step ends with its own time.

    That is its end on the host: to us, the time until the next step is a part of it as well.
    """
    steps = _theirs(run).steps_to_overlap["data"]
    for path in _paths(run):
        trace = trace_at(path)
        broken, ends_ns = step_breakdown(trace), complete_steps(trace).work_end_ns
        for name, start_ns, end_ns in zip(
            broken.names, broken.start_ns.tolist(), ends_ns.tolist(), strict=True
        ):
            theirs = steps[name.removeprefix("ProfilerStep#")][path.name.split(".")[0]]
            _, both_us, alone_us, _ = theirs
            found = exposure(trace, start_ns, end_ns)
            hidden_ns = found.communication_ns - found.exposed_ns
            assert found.exposed_ns / US == pytest.approx(alone_us, abs=CLOSE_US * 2)
            assert hidden_ns / US == pytest.approx(both_us, abs=CLOSE_US * 2)


def test_to_the_peer_collectives_that_outlast_their_steps_are_of_none_and_steps_get_fewer() -> None:
    """Here they are of the step that asked for them, and its mean is over all six steps."""
    theirs = _theirs("balanced").steps_to_wait["data"]
    assert None in theirs
    waits_us = _waits_us("balanced")["rank1"]
    assert len(waits_us) == 5
    assert theirs["all"]["rank1"][1] == int(sum(waits_us) / 5)
    parts = [rank_summary(trace_at(path)) for path in _paths("balanced")]
    assert sorted(matched_collectives(parts)["step"]) == [3, 4, 5, 6, 7, 8]
    assert rank_table(parts)["wait_ns"][1] / US == pytest.approx(sum(waits_us) / 6, abs=1)
