"""What the API says of the ranks of a run together, on runs whose truth is known."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import flask.testing
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankbuild
import tracebuild
from analyses.all_to_all import record
from generated import examples
from loading import columns_of, trace_of
from rankbuild import Group, Plan, Truth
from stepscope.analyses.communication import rank_steps as rank_steps_module
from stepscope.analyses.communication.rank_steps import rank_steps
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import rank_run
from stepscope.analyses.communication.run_collectives import collective_kinds
from stepscope.analyses.communication.run_steps import CATEGORIES, exposed_during, run_steps
from stepscope.api.app import create_app
from stepscope.api.distributed_tables import one_collective
from stepscope.api.prefetch import prepare
from stepscope.api.run_ranks import SharedRun
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Summarised
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.model.trace import trace_from_columns
from stepscope.readers.pool import InProcessReader

SLOW, MISSING, SINCE = 6, 3, 2
PLAN = Plan(
    groups=rankbuild.grid(16, 4),
    world_size=16,
    slow_us={SLOW: 300.0},
    slow_from=SINCE,
    offset_us={rank: (rank * 37 % 11 - 5) * 1e4 for rank in range(16)},
)
WORLD = Group(name="0", description="default_pg", ranks=(0, 1))
GPU = {"id": 0, "name": "Test GPU", "totalGlobalMem": 80_000_000_000,
       "computeMajor": 9, "computeMinor": 0, "numSms": 132}  # fmt: skip


class FirstOnes:
    """Reads at once, and no more than so many files."""

    def __init__(self, count: int) -> None:
        self.left = count

    def submit(self, job: Callable[[], None], /) -> None:
        if self.left > 0:
            self.left -= 1
            job()


def _write(folder: Path, truth: Truth, *, without: Sequence[int] = (), **how: Any) -> None:
    folder.mkdir(parents=True)
    for rank in range(truth.plan.world_size):
        if rank in without:
            continue
        document = rankbuild.document(truth, rank, host=f"node{rank // 8}", **how)
        document["deviceProperties"] = [GPU]
        path = folder / f"rank{rank}.{1_000 + rank}.pt.trace.json"
        path.write_text(json.dumps(document))


class Asked:
    """A server over a folder, and its one run."""

    def __init__(self, folder: Path, reads: int = 1_000, *, with_advice: bool = False) -> None:
        self.catalog = Catalog(
            [LogDirectory(path=str(folder))],
            CatalogOptions(
                executor=FirstOnes(reads),
                reader=InProcessReader(),
                prepare=prepare if with_advice else None,
            ),
        )
        self.catalog.scan()
        self.catalog.start_reading()
        self.client: flask.testing.FlaskClient = create_app(self.catalog).test_client()
        self.run = self.catalog.entries()[0].file.run_id

    def __call__(self, path: str, status: int = 200, **parameters: Any) -> Any:
        given = {"run": self.run} | parameters
        answer = self.client.get(f"/api/{path}", query_string=given)
        assert answer.status_code == status, answer.get_data(as_text=True)
        return answer.get_json()


@pytest.fixture(scope="module")
def truth() -> Truth:
    return rankbuild.run(PLAN)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, truth: Truth) -> Asked:
    folder = tmp_path_factory.mktemp("log")
    _write(folder / "job", truth, without=[MISSING])
    return Asked(folder)


def _parts(truth: Truth, **how: Any) -> list[RankSummary]:
    documents = (rankbuild.document(truth, rank, **how) for rank in range(truth.plan.world_size))
    return [
        rank_summary(trace_from_columns(columns_of(json.dumps(document)), worker=f"w{rank}"))
        for rank, document in enumerate(documents)
    ]


# --- the run ------------------------------------------------------------------------------------


def test_the_run_says_who_is_there_who_is_missing_and_who_is_late(asked: Asked) -> None:
    said = asked("distributed")
    assert said["world_size"] == 16
    assert [rank["rank"] for rank in said["ranks"]] == [r for r in range(16) if r != MISSING]
    assert (said["missing_count"], said["missing_ranks"]) == (1, str(MISSING))
    assert said["waiting_count"] == 0
    assert said["host_count"] == 2
    assert said["steps"] == list(range(PLAN.step_count))
    assert said["group_count"] == len(PLAN.groups)
    assert said["collective_count"] == len(PLAN.groups) * PLAN.step_count
    first, second = said["stragglers"][:2]
    assert (first["rank"], first["since_step"], first["cause"]) == (SLOW, SINCE, "computing")
    assert first["is_straggler"]
    assert first["late_steps"] == list(range(SINCE, PLAN.step_count))
    assert not second["is_straggler"]


def test_the_clocks_have_a_bound_that_holds(asked: Asked, truth: Truth) -> None:
    clocks = asked("distributed")["clocks"]
    assert clocks["reference"] == "rank0"
    assert clocks["lost_count"] == 0
    assert clocks["machine_count"] + clocks["collective_count"] == 15
    run = rank_run(_parts(truth))
    wrong = [
        abs(run.alignment.offset_ns[rank] + (PLAN.offset_us[rank] - PLAN.offset_us[0]) * 1e3)
        for rank in range(16)
    ]
    assert max(wrong) <= run.alignment.error_ns.max()


def _small(folder: Path, world_size: int = 3) -> Path:
    group = Group(name="0", description="default_pg", ranks=tuple(range(world_size)))
    plan = Plan(groups=[group], world_size=world_size, step_count=2)
    _write(folder / "job", rankbuild.run(plan))
    return folder


def test_answers_refine_as_ranks_come_in(tmp_path: Path) -> None:
    few = Asked(_small(tmp_path), reads=2)("distributed")
    assert (len(few["ranks"]), few["waiting_count"]) == (2, 1)
    assert few["missing_count"] == 1  # as far as is known now


def test_nothing_that_can_be_read_yet_is_still_loading(tmp_path: Path) -> None:
    assert Asked(_small(tmp_path), reads=0)("distributed", 409)["code"] == "still-loading"


def test_what_ranks_say_outlives_their_events(tmp_path: Path) -> None:
    asked = Asked(_small(tmp_path), with_advice=True)
    asked.catalog.release_memory(2**60)
    states = [entry.state for entry in asked.catalog.entries()]
    assert sum(isinstance(state, Summarised) for state in states) == 2
    assert len(asked("distributed")["ranks"]) == 3


def test_one_rank_alone_says_what_it_can(tmp_path: Path, truth: Truth) -> None:
    _write(tmp_path / "job", truth, without=range(1, 16))
    asked = Asked(tmp_path)
    said = asked("distributed")
    assert [rank["rank"] for rank in said["ranks"]] == [0]
    assert said["missing_ranks"] == "1-15"
    assert said["stragglers"] == []
    assert said["matched_count"] == 0
    assert asked("distributed/steps", metric="late")["empty"].startswith("No collective")
    (row,) = asked("distributed/ranks")["rows"]
    assert (row["transfer_ns"], row["wait_ns"]) == (None, None)
    table = asked("distributed/collectives")["table"]
    assert table["values"]["transfer_ns"] == [None] * table["row_count"]
    assert asked("distributed/groups")["row_count"] == 2


@pytest.mark.parametrize(
    ("path", "parameters", "status"),
    [
        ("distributed", {"span": "9"}, 404),
        ("distributed", {"run": "nowhere"}, 404),
        ("distributed/steps", {"metric": "luck"}, 400),
        ("distributed/collectives", {"worker": "nobody"}, 404),
        ("distributed/collectives", {"limit": 0}, 400),
        ("distributed/collective", {"worker": "rank0", "event": 999_999}, 404),
        ("distributed/collective", {}, 400),
    ],
)
def test_what_is_not_there_is_refused(
    asked: Asked, path: str, parameters: Mapping[str, Any], status: int
) -> None:
    assert asked(path, status, **parameters)["message"]


# --- ranks and steps ----------------------------------------------------------------------------


def test_the_heat_map_shows_the_late_rank_and_since_when(asked: Asked) -> None:
    said = asked("distributed/steps", metric="late")
    grid = np.array(said["values"], dtype=float) * said["scale"]
    slow = said["ranks"].index(SLOW)
    assert list(grid.argmax(axis=0)[SINCE:]) == [slow] * (PLAN.step_count - SINCE)
    others = np.delete(grid, slow, axis=0)
    assert grid[slow, SINCE:].min() > 10 * np.abs(others[:, :SINCE]).max() / 2
    assert (said["unit"], said["left_out_count"]) == ("ns", 0)


@pytest.mark.parametrize("metric", ["step", "computing", "waiting", "exposed", "idle", "copies"])
def test_every_figure_of_the_heat_map_is_that_of_the_ranks(asked: Asked, metric: str) -> None:
    said = asked("distributed/steps", metric=metric)
    step = 4
    rows = {row["worker"]: row for row in asked("distributed/ranks", step=step)["rows"]}
    ids = list(CATEGORIES)

    def part(row: Any, *names: str) -> int:
        return sum(row["parts_ns"][ids.index(name)] for name in names)

    figures: dict[str, Callable[[Any], int]] = {
        "step": lambda row: row["duration_ns"],
        "computing": lambda row: part(row, "computing", "overlapped"),
        "waiting": lambda row: part(row, "waiting"),
        "exposed": lambda row: part(row, "transfer", "waiting"),
        "idle": lambda row: row["idle_ns"],
        "copies": lambda row: part(row, "copies"),
    }
    column = said["steps"].index(step)
    shown = [row[column] * said["scale"] for row in said["values"]]
    assert shown == [figures[metric](rows[worker]) for worker in said["workers"]]


def test_a_step_that_a_rank_lacks_is_not_recorded_rather_than_nothing(tmp_path: Path) -> None:
    truth = rankbuild.run(Plan(groups=[WORLD], world_size=2, step_count=5))
    _write(tmp_path / "job", truth, without=[1])
    document = rankbuild.document(truth, 1)
    late = truth.by_clock(1, truth.steps[1][1][1]) / 1e3
    document["traceEvents"] = [e for e in document["traceEvents"] if e["ts"] >= late]
    (tmp_path / "job" / "rank1.2.pt.trace.json").write_text(json.dumps(document))
    asked = Asked(tmp_path)
    values = asked("distributed/steps", metric="step")["values"]
    assert [value is None for value in values[0]] == [False] * 5
    assert [value is None for value in values[1]] == [True, True, False, False, False]
    assert asked("distributed/ranks", step=0)["without_step"] == ["rank1"]


@given(
    seed=st.integers(0, 1000),
    slow=st.dictionaries(st.integers(0, 7), st.floats(0, 400), max_size=3),
    tensor=st.sampled_from([1, 2, 8]),
)
@examples(8)
def test_waiting_is_what_it_was_and_parts_sum_to_the_step(
    seed: int, slow: dict[int, float], tensor: int
) -> None:
    groups = [group for group in rankbuild.grid(8, tensor) if len(group.ranks) > 1]
    plan = Plan(groups=groups, world_size=8, step_count=3, slow_us=slow, seed=seed)
    truth = rankbuild.run(plan)
    run = rank_run(_parts(truth))
    steps = run_steps(run)
    assert (steps.parts_ns >= 0).all()
    assert (steps.parts_ns.sum(axis=1) == steps.duration_ns).all()
    shortest: dict[tuple[str, int], int] = {}
    for seen in (each for rank in truth.seen.values() for each in rank):
        name = (seen.group.name, seen.sequence)
        took = seen.end_ns - seen.start_ns
        shortest[name] = min(took, shortest.get(name, took))
    for row, (recording, number) in enumerate(zip(steps.trace_index, steps.number, strict=True)):
        waited = sum(
            seen.end_ns - seen.start_ns - shortest[seen.group.name, seen.sequence]
            for seen in truth.seen[int(recording)]
            if seen.step == number
        )
        assert abs(int(steps.of("waiting")[row]) - waited) <= 20  # times are written in whole ns
        assert abs(int(steps.wait_ns[row]) - waited) <= 20


def _pair(first_us: tuple[float, float], second_us: tuple[float, float]) -> list[RankSummary]:
    """Two ranks that compute until 60 us of a step of 100 us; one collective on each."""
    parts = []
    for rank, (start, duration) in enumerate((first_us, second_us)):
        rows: list[tracebuild.Row] = [
            ["user_annotation", "ProfilerStep#1", 0, 100],
            ["kernel", "gemm", 0, 60, {"correlation": 1}],
            ["gpu_memcpy", "Memcpy HtoD", 92, 4, {"correlation": 3}],
            ["kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, duration,
             {"stream": 20, "correlation": 2, "Collective name": "allreduce", "dtype": "Float",
              "In msg nelems": 10, "Out msg nelems": 10, "Group size": 2, "Seq": 1,
              "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}],
        ]  # fmt: skip
        trace = trace_of(rows, distributedInfo={"rank": rank, "world_size": 2})
        parts.append(rank_summary(trace_from_columns(trace.columns, worker=f"w{rank}")))
    return parts


def test_a_step_is_computing_overlap_waiting_transfer_copies_and_the_rest() -> None:
    # the first waits from 40 to 80 us, of which 20 us behind computing; then 10 us are sent
    steps = run_steps(rank_run(_pair((40, 50), (80, 10))))
    parts = [dict(zip(CATEGORIES, row, strict=True)) for row in (steps.parts_ns // 1000).tolist()]
    assert parts == [
        {"computing": 40, "overlapped": 20, "transfer": 10, "waiting": 20, "copies": 4,
         "loading": 0, "other": 6},
        {"computing": 60, "overlapped": 0, "transfer": 10, "waiting": 0, "copies": 4,
         "loading": 0, "other": 26},
    ]  # fmt: skip
    assert list(steps.wait_ns // 1000) == [40, 0]
    assert list(steps.communication_ns // 1000) == [50, 10]
    assert list(steps.idle_ns // 1000) == [6, 26]
    assert list(steps.late_ns // 1000) == [-20, 20]


@given(
    edges=st.lists(st.integers(0, 400), min_size=2, max_size=40, unique=True),
    waits=st.lists(st.integers(0, 400), min_size=2, max_size=12, unique=True),
)
@examples(60)
def test_exposed_within_is_what_is_counted_moment_by_moment(
    edges: list[int], waits: list[int]
) -> None:
    exposed, times = _intervals(edges), _intervals(waits)
    steps = _steps_with(exposed, [(0, 150), (150, 400)])
    counted = [
        sum(_covers(exposed, at) and _covers(times, at) for at in range(*bounds))
        for bounds in ((0, 150), (150, 400))
    ]
    assert list(exposed_during(steps, times)) == counted


def test_a_curve_of_many_edges_is_thinned_and_stays_exact_between_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[tracebuild.Row] = [
        ["user_annotation", f"ProfilerStep#{at}", at * 100, 100] for at in range(4)
    ]
    rows += [["kernel", "gemm", at * 4, 1, {"correlation": at}] for at in range(100)]
    rows.append(["kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5, 380, {"stream": 20}])
    whole = rank_steps(trace_of(rows))
    monkeypatch.setattr(rank_steps_module, "MOST_EDGES", 10)
    thin = rank_steps(trace_of(rows))
    assert len(thin.exposed.at_ns) < 30 < len(whole.exposed.at_ns)
    everything = np.array([[0, 10**9]])
    assert list(exposed_during(thin, everything)) == list(whole.exposed_ns)
    part = np.array([[37_000, 211_000]])
    exact, rough = exposed_during(whole, part), exposed_during(thin, part)
    assert np.abs(exact - rough).max() <= 20_000  # a tenth of the edges, spread evenly


def _intervals(points: Sequence[int]) -> Any:
    ordered = sorted(points)[: len(points) // 2 * 2]
    return np.array(ordered, dtype=np.int64).reshape(-1, 2)


def _covers(times: Any, at: int) -> bool:
    return any(start <= at < end for start, end in times.tolist())


def _steps_with(exposed: Any, bounds: Sequence[tuple[int, int]]) -> rank_steps_module.RankSteps:
    """Steps with these exposed times, as their curve tells them."""
    at = np.unique(np.concatenate((exposed.ravel(), np.ravel(bounds))))
    until = [sum(_covers(exposed, moment) for moment in range(int(t))) for t in at]
    curve = rank_steps_module.Curve(at_ns=at, until_ns=np.array(until, dtype=np.int64))
    start, end = np.array(bounds, dtype=np.int64).T
    none = np.zeros(len(start), dtype=np.int64)
    return rank_steps_module.RankSteps(
        number=np.arange(len(start)), start_ns=start, duration_ns=end - start, computing_ns=none,
        overlapped_ns=none, exposed_ns=none, copies_ns=none, loading_ns=none,
        idle_ns=none.astype(float), exposed=curve, has_steps=True,
    )  # fmt: skip


# --- collectives --------------------------------------------------------------------------------


def test_kinds_of_collectives_are_what_a_slow_count_finds(asked: Asked) -> None:
    kinds = asked("distributed/collectives", by="kind")["table"]["values"]
    each = asked("distributed/collectives", by="each", limit=10_000)["table"]["values"]
    assert len(each["group"]) == len(PLAN.groups) * PLAN.step_count
    for at, group in enumerate(kinds["group"]):
        own = [row for row, name in enumerate(each["group"]) if name == group]
        ranks = each["rank_count"][own[0]]
        assert kinds["call_count"][at] == len(own) == PLAN.step_count
        assert kinds["rank_count"][at] == ranks
        total = sum(each["mean_ns"][row] for row in own)
        assert kinds["total_ns"][at] == pytest.approx(total, abs=len(own))
        transfer = sum(each["transfer_ns"][row] for row in own)
        assert kinds["transfer_ns"][at] == pytest.approx(transfer / len(own), abs=1)
        assert kinds["wait_ns"][at] == pytest.approx(
            sum(each["wait_ns"][row] for row in own) / len(own), abs=1
        )
        rate = 4_000_000 * len(own) / transfer * 1e9
        assert kinds["algorithm_bytes_per_second"][at] == pytest.approx(rate, rel=1e-6)
        size = kinds["group_size"][at]
        factor = 2 * (size - 1) / size
        assert kinds["bus_bytes_per_second"][at] == pytest.approx(rate * factor, rel=1e-6)


def test_collectives_can_be_those_of_a_step_and_of_a_rank(asked: Asked) -> None:
    said = asked("distributed/collectives", by="each", step=4, worker=f"rank{SLOW}")
    values = said["table"]["values"]
    assert values["step"] == [4, 4]
    assert values["wait_ns"] == [0, 0]  # who comes last waits for nobody
    assert values["last"] == [f"rank {SLOW}"] * 2
    others = asked("distributed/collectives", by="each", step=4, worker="rank7")
    assert max(others["table"]["values"]["wait_ns"]) > 250_000


def test_the_longest_waited_for_come_first_and_the_rest_is_counted(asked: Asked) -> None:
    table = asked("distributed/collectives", by="each", limit=3)["table"]
    everything = asked("distributed/collectives", by="each", limit=10_000)["table"]
    assert (table["row_count"], table["all_row_count"]) == (3, everything["row_count"])
    assert table["values"]["wait_ns"] == everything["values"]["wait_ns"][:3]
    assert everything["values"]["wait_ns"] == sorted(everything["values"]["wait_ns"], reverse=True)


def test_one_collective_has_its_ranks_on_one_clock(asked: Asked, truth: Truth) -> None:
    table = asked("distributed/collectives", by="each", step=4, worker=f"rank{SLOW}")
    for opens in table["opens"]:
        said = asked("distributed/collective", **opens)
        sequence = said["sequence"]
        name = said["group"]
        true = {
            rank: next(s for s in seen if (s.group.name, s.sequence) == (name, sequence))
            for rank, seen in truth.seen.items()
            if any(group.name == name and rank in group.ranks for group in PLAN.groups)
        }
        first = min(true[member["rank"]].start_ns for member in said["members"])
        assert said["aligned_by"] == "clocks"
        for member in said["members"]:
            wrong = member["start_ns"] - (true[member["rank"]].start_ns - first)
            assert abs(wrong) <= said["error_ns"]
        assert [m["rank"] for m in said["members"] if m["is_last"]] == [SLOW]
        shortest = min(member["duration_ns"] for member in said["members"])
        assert said["transfer_ns"] == shortest
        assert said["wait_ns"] == sum(m["wait_ns"] for m in said["members"])


def test_a_collective_leads_to_those_like_it_by_any_of_its_members(asked: Asked) -> None:
    begin = asked("distributed/collectives", by="each", worker="rank5")["opens"][0]
    said = asked("distributed/collective", **begin)
    by_another = asked(
        "distributed/collective",
        worker=said["members"][-1]["worker"],
        event=said["members"][-1]["event"],
    )
    assert by_another == said
    after = said
    for place in range(said["place"] + 1, said["alike_count"] + 1):
        after = asked("distributed/collective", **after["after"])
        assert (after["place"], after["group"]) == (place, said["group"])
    assert after["after"] is None


def test_a_rank_that_is_missing_is_named_by_the_collectives_that_lack_it(asked: Asked) -> None:
    table = asked("distributed/collectives", by="each", limit=10_000)["table"]["values"]
    lacking = {
        group for group, ranks in zip(table["group"], table["missing"], strict=True) if ranks
    }
    assert lacking == {"mesh_tp (t0)", "mesh_dp (d3)"}
    assert set(filter(None, table["missing"])) == {str(MISSING)}


def test_clocks_that_cannot_be_aligned_leave_ends_together() -> None:
    shared = SharedRun(rank_run(_pair((40, 50), (80, 10))[:1]))
    said = one_collective(shared, "w0", int(shared.events[0]))
    assert (said.aligned_by, said.matched_by, said.expected_count) == ("ends", "", 2)
    assert [(m.start_ns, m.duration_ns, m.is_last) for m in said.members] == [(0, 50_000, False)]


def test_no_collectives_no_rows() -> None:
    part = rank_summary(trace_of([["cpu_op", "aten::mm", 0, 10]]))
    shared = SharedRun(rank_run([part]))
    assert len(collective_kinds(shared.run, shared.matched, np.zeros(0, dtype=bool))) == 0
    assert shared.groups == ()
    assert len(shared.stragglers) == 0


# --- groups, devices ----------------------------------------------------------------------------


def test_groups_say_who_is_in_them_and_what_they_send(asked: Asked) -> None:
    table = asked("distributed/groups")
    rows = {
        name: {key: table["values"][key][at] for key in table["values"]}
        for at, name in enumerate(table["values"]["name"])
    }
    assert set(rows) == {group.name for group in PLAN.groups}
    first = rows["t0"]
    assert (first["group"], first["role"], first["ranks"]) == ("mesh_tp (t0)", "TP", "0-3")
    assert (first["group_size"], first["recorded_count"]) == (4, 3)
    assert first["call_count"] == PLAN.step_count
    assert first["total_bytes"] == PLAN.step_count * 4_000_000
    assert rows["d1"]["ranks"] == "1, 5, 9, 13"


def test_devices_say_node_process_and_what_they_are(asked: Asked) -> None:
    values = asked("distributed/devices")["values"]
    assert {key: column[-1] for key, column in values.items() if key != "busy_share"} == {
        "rank": "rank 15",
        "name": "Test GPU",
        "memory_bytes": 80_000_000_000,
        "processor_count": 132,
        "device": 0,
        "host": "node1",
        "process": "100",
        "compute_capability": "9.0",
        "worker": "rank15",
    }
    assert 0.9 < values["busy_share"][-1] <= 1


def test_ranks_of_a_cpu_wait_in_gloo(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    for rank, start in enumerate((20, 70)):
        document = tracebuild.document(
            rows=[
                ["user_annotation", "ProfilerStep#1", 0, 100],
                ["cpu_op", "aten::mm", 0, start],
                ["user_annotation", "gloo:all_reduce", start, 90 - start,
                 {"pid": 100, "tid": 101}],
            ],
            metadata={"distributedInfo": {"rank": rank, "world_size": 2}},
        )  # fmt: skip
        path = tmp_path / "job" / f"rank{rank}.1.pt.trace.json"
        tracebuild.write(document, path)
    asked = Asked(tmp_path)
    said = asked("distributed/ranks")
    ids = [category["id"] for category in said["categories"]]
    rows = [dict(zip(ids, row["parts_ns"], strict=True)) for row in said["rows"]]
    assert [row["waiting"] for row in rows] == [50_000, 0]
    assert [row["transfer"] for row in rows] == [20_000, 20_000]
    assert [row["computing"] for row in rows] == [20_000, 70_000]
    assert [row["idle_ns"] for row in said["rows"]] == [None, None]
    for metric in ("idle", "copies"):
        assert asked("distributed/steps", metric=metric)["empty"] == "No device was recorded."


def test_all_to_all_exchanges_of_recorded_ranks(tmp_path: Path) -> None:
    shutil.copytree(Path(record.__file__).parent, tmp_path / "run")
    asked = Asked(tmp_path)
    assert asked("distributed")["has_all_to_all"]
    (group,) = asked("distributed/all-to-all")["groups"]
    truth = [
        [2 * record.sent_rows(sender, receiver) * 64 + 16 for receiver in range(record.RANKS)]
        for sender in range(record.RANKS)
    ]
    received = [sum(sent[receiver] for sent in truth) for receiver in range(record.RANKS)]
    assert group == {
        "group": "0",
        "description": "default_pg",
        "ranks": [0, 1, 2, 3],
        "call_count": 3,
        "sent_bytes": truth,
        "received_bytes": received,
        "imbalance": max(received) / (sum(received) / record.RANKS),
        "reason": "",
    }
    (tmp_path / "run" / "rank2.pt.trace.json.gz").unlink()
    asked = Asked(tmp_path)
    (group,) = asked("distributed/all-to-all")["groups"]
    assert group["sent_bytes"] == [*truth[:2], [None] * 4, truth[3]]
    assert (group["received_bytes"], group["imbalance"]) == ([], None)
    assert group["reason"] == "There is no trace of rank 2."


def test_runs_without_exchanges_have_none(tmp_path: Path) -> None:
    plan = Plan(groups=[WORLD], world_size=2)
    _write(tmp_path / "run", rankbuild.run(plan))
    asked = Asked(tmp_path)
    assert not asked("distributed")["has_all_to_all"]
    assert asked("distributed/all-to-all")["groups"] == []
