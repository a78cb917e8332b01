"""Process groups: of header and events, and what each is for."""

from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from rankparts import parts_of, shape
from stepscope.analyses.communication.process_groups import SCHEMA, Signs, process_groups, role
from stepscope.analyses.communication.ranked_run import rank_run
from stepscope.analyses.communication.run_groups import run_groups
from stepscope.base.errors import MissingDataError

US = 1000


def _signs(**more: Any) -> Signs:
    known: dict[str, Any] = {
        "description": "undefined",
        "ranks": (),
        "size": 0,
        "kinds": frozenset(),
        "world_size": 64,
        "has_data_parallel": False,
    }
    known |= {"size": len(more.get("ranks", ()))} | more
    return Signs(**known)


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("mesh_tp", "TP"),
        ("mesh_dp_shard", "FSDP"),
        ("mesh_dp_replicate", "DP"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "TP"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "DP+CP"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "PP"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "EP"),
        ("CONTEXT_PARALLEL_GROUP", "CP"),
    ],
)
def test_words_of_a_description_tell_the_role(description: str, name: str) -> None:
    found = role(_signs(description=description, ranks=(0, 1)))
    assert (found.name, found.confidence) == (name, "high")


@pytest.mark.parametrize(
    ("signs", "name", "confidence"),
    [
        (_signs(ranks=(3,)), "single", "high"),
        (
            _signs(
                size=64,
                kinds=frozenset({"all_reduce"}),
                has_data_parallel=True,
                description="default_pg",
            ),
            "DP",
            "high",
        ),
        (_signs(ranks=(0, 32), kinds=frozenset({"send", "recv"})), "PP", "medium"),
        (_signs(ranks=(0, 1, 2, 3), kinds=frozenset({"all_to_all", "barrier"})), "EP", "medium"),
        (_signs(size=64, kinds=frozenset({"all_gather", "reduce_scatter"})), "FSDP", "medium"),
        (
            _signs(ranks=(0, 1, 2, 3), kinds=frozenset({"all_gather", "reduce_scatter"})),
            "TP",
            "low",
        ),
        (_signs(ranks=tuple(range(8)), kinds=frozenset({"all_reduce"})), "TP", "low"),
        (_signs(ranks=tuple(range(0, 64, 8)), kinds=frozenset({"all_reduce"})), "DP", "low"),
        (_signs(size=64), "DP", "low"),
        (_signs(ranks=(0, 3, 5)), None, None),
        (_signs(), None, None),
    ],
)
def test_without_words_what_it_does_and_how_its_ranks_lie_tell(
    signs: Signs, name: str | None, confidence: str | None
) -> None:
    found = role(signs)
    assert (found.name, found.confidence) == (name, confidence)
    assert found.reason.endswith(".")


def test_groups_of_header_and_events_are_rows() -> None:
    header = {
        "rank": 0,
        "world_size": 4,
        "pg_config": [
            {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3], "pg_size": 4}
        ],
    }
    told = {"Process Group Name": "5", "Process Group Ranks": "[0, 2]", "Group size": 2,
            "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 10,
            "Process Group Description": "mesh_dp"}  # fmt: skip
    rows = [
        ["kernel", "ncclDevKernel_AllReduce", 0, 10, told],
        ["kernel", "ncclDevKernel_AllReduce", 20, 30, told],
    ]
    used, listed = process_groups(trace_of(rows, distributedInfo=header)).to_dict("records")
    assert (used["group"], used["ranks"], used["role"]) == ("5", "[0,2]", "DP")
    assert (used["source"], listed["source"]) == ("events", "header")
    assert (used["call_count"], used["total_ns"], used["total_bytes"]) == (2, 40 * US, 80)
    assert (listed["group"], listed["group_size"], listed["call_count"]) == ("0", 4, 0)
    assert np.isnan(listed["total_bytes"])


def test_a_recording_without_groups_says_what_to_record() -> None:
    with pytest.raises(MissingDataError, match="no process group") as missing:
        process_groups(trace_of([["cpu_op", "aten::mm", 0, 5]]))
    assert "init_process_group" in missing.value.remedy


@pytest.mark.parametrize("name", shared_trace_names())
def test_every_real_header_is_read(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        table = process_groups(trace)
    except MissingDataError:
        assert "pg_config" not in (trace.metadata.get("distributedInfo") or {})
        return
    assert {c: str(t) for c, t in table.dtypes.items()} == {c.name: c.dtype for c in SCHEMA}
    listed = trace.metadata["distributedInfo"]["pg_config"]
    assert set(table["group"]) >= {str(group["pg_name"]) for group in listed}


@pytest.mark.parametrize(
    ("forward_share", "name", "confidence"),
    [(0.5, "TP", "medium"), (0.0, "DP", "medium"), (0.1, "DP", "low"), (None, "DP", "low")],
)
def test_what_is_reduced_in_the_forward_pass_are_activations(
    forward_share: float | None, name: str, confidence: str
) -> None:
    ranks = tuple(range(0, 64, 8))
    found = role(_signs(ranks=ranks, kinds=frozenset({"all_reduce"}), forward_share=forward_share))
    assert (found.name, found.confidence) == (name, confidence)


def test_large_reductions_before_the_backward_pass_tell_tensor_parallelism() -> None:
    def reduces(group: str, at: int) -> list[list[Any]]:
        told = {
            "Process Group Name": group,
            "Process Group Ranks": "[0, 8]",
            "Group size": 2,
            "Collective name": "allreduce",
            "dtype": "Float",
            "In msg nelems": 100_000,
        }
        return [["kernel", "ncclDevKernel_AllReduce", at, 10, told | {"stream": 20}]]

    rows: list[list[Any]] = []
    for step in range(2):
        base = 1_000 * step
        rows += [
            ["user_annotation", f"ProfilerStep#{step}", base, 900],
            ["cpu_op", "aten::mm", base + 10, 50],
            *reduces("a", base + 100),
            ["cpu_op", "autograd::engine::evaluate_function: MmBackward0", base + 300, 50],
            *reduces("a", base + 400),
            *reduces("b", base + 500),
        ]
    table = process_groups(trace_of(rows, distributedInfo={"world_size": 64}))
    assert dict(zip(table["group"], table["role"], strict=True)) == {"a": "TP", "b": "DP"}
    assert list(table["role_confidence"]) == ["medium", "medium"]


SHAPE = {"tp": "TP", "dp": "DP", "ep": "EP", "pp": "PP", "world": "DP"}


@pytest.mark.parametrize("is_described", [True, False])
def test_every_group_of_a_mesh_is_named_by_words_or_by_what_it_does(is_described: bool) -> None:  # noqa: FBT001
    parts = parts_of(shape(64, step_count=1, is_described=is_described))
    for group in run_groups(rank_run(parts)):
        axis = "world" if group.name == "0" else group.name.rstrip("0123456789")
        assert group.role == SHAPE[axis], group
        by_words = is_described and axis != "world"
        low = "low" if axis == "world" else "medium"
        assert group.role_confidence == ("high" if by_words else low)
        assert group.role_reason.endswith(".")


def test_a_group_that_does_not_tell_is_taken_for_what_those_that_lie_alike_are() -> None:
    parts = parts_of(shape(64, step_count=1, is_described=False))
    blind = parts_of(shape(64, step_count=1, is_described=False, has_passes=False))
    mixed = [*parts[:8], *blind[8:]]
    found = {group.name: group for group in run_groups(rank_run(mixed))}
    assert (found["tp0"].role, found["tp0"].role_confidence) == ("TP", "medium")
    assert (found["tp5"].role, found["tp5"].role_confidence) == ("TP", "low")
    assert "of group 'tp0'" in found["tp5"].role_reason
