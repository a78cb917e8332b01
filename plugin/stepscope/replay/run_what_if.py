"""Simulated step of a run with other ranks, stages or another network."""

import math
import re
from collections.abc import Iterator
from typing import Annotated

import msgspec
import numpy as np

from stepscope.analyses.communication.rank_metrics import stages_of
from stepscope.analyses.communication.ranked_run import RankRun, missing_ranks
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.model.arrays import Ints, Mask
from stepscope.replay.run_changes import (
    EqualWork,
    RunChange,
    ScaleTransfers,
    ScaleWork,
    UsualWork,
)
from stepscope.replay.run_checks import names_of
from stepscope.replay.run_graph import run_graph
from stepscope.replay.run_simulation import (
    MOST_ERROR,
    RunSimulation,
    run_replay_error,
    simulate_run,
    uncut,
)

STAGE = re.compile(r"(\d+)=(\d+(?:\.\d*)?|\.\d+)")


class StageScale(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline stage whose work takes another time."""

    stage: Annotated[int, msgspec.Meta(ge=1)]
    """From 1."""
    factor: Annotated[float, msgspec.Meta(ge=0)]


class RunWhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between the recorded run and the simulated one."""

    ranks_alike: bool = False
    """Whether all ranks of a pipeline stage work as long as their mean."""
    without_ranks: tuple[int, ...] = ()
    """Ranks that work as long as the median of the other ranks of their stage."""
    network: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """Speed of the network; 2: each transfer takes half its time."""
    stages: tuple[StageScale, ...] = ()


class RankPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """One rank; times are per step."""

    rank: int | None
    worker: str
    stage: int | None
    """Pipeline stage, from 1; None: no pipeline, or unknown."""
    recorded_ns: float
    simulated_ns: float
    recorded_work_ns: float
    """Time in which the rank does not wait for a collective."""
    simulated_work_ns: float
    recorded_wait_ns: float
    """Time of waiting for other ranks, in an unchanged replay."""
    simulated_wait_ns: float


class RunPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """The simulated step of a run beside the recorded one; times are means over ranks and steps."""

    is_changed: bool
    """Whether the simulated run differs from the recorded one at all."""
    step_count: int
    """Recorded steps; 0: the times are of the whole traces."""
    recorded_ns: float
    simulated_ns: float
    replay_error: float
    """Deviation from the recorded steps of a replay in which ranks leave collectives together."""
    ranks: tuple[RankPrediction, ...]
    left_out: tuple[str, ...]
    """Workers whose traces were cut off."""
    missing_ranks: tuple[int, ...]
    """Ranks without a trace: the time that others wait for them counts as transfer."""


def parse_stage(text: str) -> StageScale:
    """Return the scale that a text such as `2=1.5` describes.

    Raises:
        UsageError: it has another form.
    """
    match = STAGE.fullmatch(text)
    if not match or not int(match[1]):
        msg = f"{text!r} is not of the form STAGE=FACTOR, such as 2=1.5; stages count from 1"
        raise UsageError(msg)
    return StageScale(stage=int(match[1]), factor=float(match[2]))


def predict_run(run: RankRun, what_if: RunWhatIf) -> RunPrediction:
    """Return the step of a run that a simulation predicts.

    Traces that were cut off are left out.

    Raises:
        MissingDataError: the ranks recorded different steps or collectives, their order forms a
            circle, or a replay with typical transfers misses the recorded steps by more than 2 %.
        UsageError: a rank or stage does not exist, or a factor is out of range.
    """
    _require_valid(what_if)
    whole = uncut(run)
    graph = run_graph(whole)
    changes = list(_changes(whole, what_if))
    error = run_replay_error(whole)
    if error > MOST_ERROR:
        msg = f"replayed with typical transfers, the ranks' steps are {error:.1%} off the recorded"
        raise MissingDataError(msg, "Record all ranks of the job, in the same steps.")
    recorded, simulated = simulate_run(whole, ()), simulate_run(whole, changes)
    absent = missing_ranks(run).absent | {of.rank for of in run.ranks} - {
        of.rank for of in whole.ranks
    }
    used = {part.evidence.worker for part in whole.parts}
    workers = (part.evidence.worker for part in run.parts)
    return RunPrediction(
        is_changed=bool(changes),
        step_count=graph.step_ns.shape[1] if whole.parts[0].steps.has_steps else 0,
        recorded_ns=float(graph.step_ns.mean()),
        simulated_ns=float(simulated.step_ns.mean()),
        replay_error=error,
        ranks=tuple(_ranks(whole, recorded, simulated)),
        left_out=tuple(worker for worker in workers if worker not in used),
        missing_ranks=tuple(sorted(rank for rank in absent if rank is not None)),
    )


def _require_valid(what_if: RunWhatIf) -> None:
    """Check the factors, which msgspec checks only in JSON.

    Raises:
        UsageError: one is not a number in its range.
    """
    if not 0 < what_if.network < math.inf:
        msg = f"the network's speed {what_if.network} is not a number above 0"
        raise UsageError(msg)
    for scale in what_if.stages:
        if not 0 <= scale.factor < math.inf:
            msg = f"the factor {scale.factor} of stage {scale.stage} is not a number from 0"
            raise UsageError(msg)


def _changes(run: RankRun, what_if: RunWhatIf) -> Iterator[RunChange]:
    stage = stages_of(run)
    if what_if.without_ranks:
        yield UsualWork(stage=stage, is_changed=_with_ranks(run, what_if.without_ranks))
    if what_if.ranks_alike:
        yield EqualWork(stage=stage)
    for scale in what_if.stages:
        is_changed = stage == scale.stage - 1
        if not is_changed.any():
            count = int(stage.max(initial=-1)) + 1
            has = f"stages 1 to {count}" if count else "no pipeline stages"
            msg = f"there is no pipeline stage {scale.stage}: the run has {has}"
            raise UsageError(msg)
        yield ScaleWork(is_changed=is_changed, factor=scale.factor)
    if what_if.network != 1:
        yield ScaleTransfers(factor=1 / what_if.network)


def _with_ranks(run: RankRun, ranks: tuple[int, ...]) -> Mask:
    numbers = [of.rank for of in run.ranks]
    for rank in ranks:
        if rank not in numbers:
            every: Ints = np.arange(len(numbers))
            msg = f"there is no rank {rank}; the run has {names_of(run, every)}"
            raise UsageError(msg)
    return np.array([number in ranks for number in numbers], dtype=bool)


def _ranks(
    run: RankRun, recorded: RunSimulation, simulated: RunSimulation
) -> Iterator[RankPrediction]:
    count = recorded.step_ns.shape[1]
    stage = stages_of(run)
    step_ns = run_graph(run).step_ns.mean(axis=1)
    for at, (part, of) in enumerate(zip(run.parts, run.ranks, strict=True)):
        yield RankPrediction(
            rank=of.rank,
            worker=part.evidence.worker,
            stage=int(stage[at]) + 1 if stage[at] >= 0 else None,
            recorded_ns=float(step_ns[at]),
            simulated_ns=float(simulated.step_ns[at].mean()),
            recorded_work_ns=float(recorded.work_ns[at] / count),
            simulated_work_ns=float(simulated.work_ns[at] / count),
            recorded_wait_ns=float(recorded.wait_ns[at] / count),
            simulated_wait_ns=float(simulated.wait_ns[at] / count),
        )
