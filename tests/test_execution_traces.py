"""Input shapes from execution traces, against `record_shapes=True` of the same run."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tracebuild
from loading import SAMPLE_LOGS
from stepscope import ingest
from stepscope.analyses.core.record_next import record_next
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.base.errors import UnreadableError
from stepscope.comparison.samples import conditions
from stepscope.ingest import execution_traces
from stepscope.model.read import read_trace
from stepscope.model.trace import Trace, trace_from_columns
from stepscope.storage import discover

PROCESS = tracebuild.PROCESS_ID
INPUTS = ["input_dims", "input_types", "concrete_inputs"]


def node(
    identity: int, name: str, inputs: Sequence[tuple[Any, Any, str]] = (), schema: str = ""
) -> dict[str, Any]:
    """A node of schema 1.1; inputs are (shape, value, type)."""
    return {
        "id": identity + 10,
        "name": name,
        "ctrl_deps": 2,
        "inputs": {
            "values": [value for _, value, _ in inputs],
            "shapes": [shape for shape, _, _ in inputs],
            "types": [written for _, _, written in inputs],
            "strides": [[] for _ in inputs],
        },
        "outputs": {"values": [], "shapes": [], "types": [], "strides": []},
        "attrs": [
            {"name": "rf_id", "type": "uint64", "value": identity},
            {"name": "op_schema", "type": "string", "value": schema},
        ],
    }


MM = [
    ([8, 4], [5, 6, 0, 32, 4, "cpu"], "Tensor(float)"),
    ([4, 2], [7, 8, 0, 8, 4, "cpu"], "Tensor(float)"),
]
ADD = [MM[0], ([], 0.1, "Double"), ([], "<None>", "None")]


def execution_trace(nodes: Sequence[Any], process: int = PROCESS) -> str:
    """An execution trace as torch lays it out."""
    listed = ",\n".join(f"      {json.dumps(each)}" for each in nodes)
    return (
        f'{{\n  "schema": "1.1.1-chakra.0.0.4", "pid": {process}, "time": "2026-11-27 15:59:49",'
        f' "start_ts": 72875429,\n  "nodes": [\n{listed}\n  ],\n  "finish_ts": 72877749\n}}\n'
    )


ROWS: list[list[Any]] = [
    ["cpu_op", "aten::mm", 0, 10, {"Record function id": 3}],
    ["cpu_op", "aten::add", 20, 10, {"Record function id": 4}],
    ["cpu_op", "aten::relu", 40, 10, {"Record function id": 5}],
]
NODES = [node(3, "aten::mm", MM), node(4, "aten::add", ADD)]


def trace_in(folder: Path, rows: Sequence[Any] = ROWS, **files: str) -> Trace:
    """The trace of rows in a folder with other files, by stem."""
    (folder / "w.1.pt.trace.json").write_text(json.dumps(tracebuild.document(rows=rows)))
    for stem, text in files.items():
        (folder / f"{stem.replace('_', '.')}.json").write_text(text)
    (file,) = discover.at(str(folder))
    return read_trace(file)


def inputs_of(trace: Trace) -> list[list[Any]]:
    """The three columns of inputs, None for missing."""
    frame = trace.host_calls[INPUTS].astype(object)
    return [[None if pd.isna(text) else text for text in row] for row in frame.to_numpy().tolist()]


def test_calls_get_the_inputs_of_the_nodes_with_their_ids(tmp_path: Path) -> None:
    trace = trace_in(tmp_path, w_et=execution_trace(NODES))
    assert inputs_of(trace) == [
        ["[[8,4],[4,2]]", '["float","float"]', '["",""]'],
        ["[[8,4],[],[]]", '["float","Scalar",""]', '["","0.10000000000000001",""]'],
        [None, None, None],
    ]
    link = trace.execution_trace
    assert link is not None
    assert (link.file_name, link.linked_count, link.call_count) == ("w.et.json", 2, 3)
    assert link.problem == ""
    flops = operator_table(trace).set_index("name")["flops"]
    assert flops["aten::mm"] == 2 * 8 * 4 * 2
    assert conditions(trace)["record_shapes"] == "off"
    assert "shapes" not in {advice.flag for advice in record_next(trace)}


def test_the_schema_of_torch_before_2_2_is_read(tmp_path: Path) -> None:
    old = {
        "name": "aten::mm", "id": 13, "rf_id": 3, "parent": 2, "op_schema": "",
        "inputs": [[5, 6, 0, 32, 4, "cpu"], 1], "input_shapes": [[8, 4], []],
        "input_types": ["Tensor(c10::Half)", "Int"],
    }  # fmt: skip
    text = json.dumps({"schema": "1.0.1", "pid": PROCESS, "nodes": [old]})
    rows = [["cpu_op", "aten::mm", 0, 10, {"External id": 3}]]
    assert inputs_of(trace_in(tmp_path, rows, any=text)) == [
        ["[[8,4],[]]", '["c10::Half","Scalar"]', '["","1"]']
    ]


PROBLEMS: dict[str, tuple[dict[str, str], str, str]] = {
    "another process": (
        {"other": execution_trace(NODES, process=7)},
        "other.json",
        "it is of another process than the trace",
    ),
    "other ids": (
        {"w_et": execution_trace([node(9, "aten::mm", MM)])},
        "w.et.json",
        "no call of the trace has an id that is in it",
    ),
    "other names": (
        {"w_et": execution_trace([node(3, "aten::add", ADD), node(4, "aten::add", ADD)])},
        "w.et.json",
        "its ids are of other calls: of 2 common ids, 1 have different names, such as aten::mm in "
        "the trace and aten::add in it",
    ),
    "no call": (
        {"w_et": execution_trace([{"id": 1}])},
        "w.et.json",
        "this execution trace has no call with an id (rf_id)",
    ),
    "cut off in its first node": (
        {"w_et": execution_trace(NODES)[:200]},
        "w.et.json",
        "this execution trace has no call with an id (rf_id)",
    ),
    "two that agree": (
        {"a": execution_trace(NODES), "b": execution_trace(NODES)},
        "a.json",
        "the calls of a.json and b.json agree with the trace's equally well",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_is_linked_without_agreement_and_the_reason_is_stated(
    name: str, tmp_path: Path
) -> None:
    files, file_name, problem = PROBLEMS[name]
    trace = trace_in(tmp_path, **files)
    link = trace.execution_trace
    assert link is not None
    assert (link.file_name, link.problem, link.linked_count) == (file_name, problem, 0)
    assert link.remedy
    assert trace.columns.arguments.keys() == {"Record function id"}


def test_the_file_with_the_workers_name_goes_first(tmp_path: Path) -> None:
    other = [node(3, "aten::mm", MM[:1]), *NODES[1:]]
    trace = trace_in(tmp_path, a=execution_trace(other), w_et=execution_trace(NODES))
    assert inputs_of(trace)[0][0] == "[[8,4],[4,2]]"


def test_of_two_spans_each_has_its_file(tmp_path: Path) -> None:
    second = execution_trace([node(1003, "aten::mm", MM)])
    trace = trace_in(tmp_path, w_1=second, w_2=execution_trace(NODES))
    assert trace.execution_trace is not None
    assert trace.execution_trace.file_name == "w.2.json"


@pytest.mark.parametrize("text", ["", "{", '{"schema": 1}', '{"traceEvents": []}', "[]", "\0\1"])
def test_other_files_of_the_folder_are_ignored(text: str, tmp_path: Path) -> None:
    assert trace_in(tmp_path, settings=text).execution_trace is None


def test_shapes_of_the_trace_itself_stay(tmp_path: Path) -> None:
    rows = [[*ROWS[0][:4], {**ROWS[0][4], "Input Dims": [[1, 1]]}]]
    trace = trace_in(tmp_path, rows, w_et=execution_trace(NODES))
    assert trace.execution_trace is None
    assert inputs_of(trace)[0][0] == "[[1,1]]"


def test_a_damaged_node_costs_only_itself(tmp_path: Path) -> None:
    """torch does not escape quotes in the names of ranges, and a killed process leaves no end."""
    text = execution_trace([node(8, "QUOTED"), *NODES, node(9, "aten::mm", MM)])
    text = text.replace("QUOTED", 'my "range"')[: text.rindex("aten::mm")]
    path = tmp_path / "et.json"
    path.write_text(text)
    read = execution_traces.read(str(path))
    assert list(read.calls) == [3, 4]
    assert read.lost_count == 2


@pytest.mark.parametrize(
    ("written", "schema", "kind"),
    [
        ("Tensor(c10::complex<float>)", "Tensor x", "c10::complex<float>"),
        ("Tensor(nullptr (uninitialized))", "Tensor? x", ""),
        ("GenericList[Tensor(long int),Tensor(float)]", "Tensor[] x", "TensorList"),
        ("GenericList[Tensor(long int)]", "Tensor?[] x", ""),
        ("GenericList[Tensor(nullptr (uninitialized)),Tensor(long int)]", "", ""),
        ("GenericList[]", "int[] x", "ScalarList"),
        ("GenericList[Int,Int]", "SymInt[2] x", "ScalarList"),
        ("Bool", "bool x", "Scalar"),
        ("Device", "Device? x", ""),
        ("String", "str x", ""),
    ],
)
def test_types_are_named_as_kineto_names_them(
    written: str, schema: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "et.json"
    shape = [[2]] if "Tensor(" in written else []
    inputs: list[tuple[Any, Any, str]] = [(shape, [], written)]
    path.write_text(execution_trace([node(1, "op", inputs, f"op({schema}) -> Tensor")]))
    (call,) = execution_traces.read(str(path)).calls.values()
    assert json.loads(call.types) == [kind]


def test_a_file_that_is_gone_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot be read"):
        execution_traces.read(str(tmp_path / "gone.json"))


# --- recorded pairs -------------------------------------------------------------------------------

ROUNDED = frozenset({"aten::linspace"})
"""Doubles have six digits in an execution trace."""
BOTH = """
import sys, torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

x = torch.randn(4, 8)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
lstm, attention = torch.nn.LSTM(8, 8), torch.nn.MultiheadAttention(8, 2)
observer = ExecutionTraceObserver().register_callback(sys.argv[1] + "/w.et.json")
with profile(
    activities=[ProfilerActivity.CPU], record_shapes=True, execution_trace_observer=observer
) as recording:
    model(torch.randn(2, 3, 8, 8)).sum().backward()
    torch.cat([x, x]); torch.full((2,), float("inf")); x.clamp(None, 1e20); x * 1j; x + 1.0
    lstm(x[None]); attention(x, x, x); torch._foreach_add([x, x], [x, x], alpha=2)
    x[None, ..., 0]; x[:, None, torch.tensor([0])]; x.to(torch.bfloat16) + 1; x.type(torch.uint8)
    torch.einsum("ab,cb->ac", x, x); torch.where(x > 0); torch.empty(0); torch.linspace(0, 1 / 3, 5)
    with torch.profiler.record_function("a range"):
        torch.nn.functional.dropout(x, 0.3)
recording.export_chrome_trace(sys.argv[1] + "/w.1.pt.trace.json")
observer.unregister_callback()
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an execution trace, and a trace with shapes of the same run."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("both")
    subprocess.run([sys.executable, "-c", BOTH, str(folder)], check=True, capture_output=True)
    return folder


def without_shapes(folder: Path, to: Path) -> None:
    """Writes the trace as it is without `record_shapes`, and the execution trace."""
    document = json.loads((folder / "w.1.pt.trace.json").read_text())
    document.pop("record_shapes")
    for event in document["traceEvents"]:
        for key in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs"):
            event.get("args", {}).pop(key, None)
    (to / "w.1.pt.trace.json").write_text(json.dumps(document))
    (to / "w.et.json").write_bytes((folder / "w.et.json").read_bytes())


@pytest.mark.recording
def test_every_call_has_the_inputs_that_record_shapes_writes(both: Path, tmp_path: Path) -> None:
    without_shapes(both, tmp_path)
    (file,) = discover.at(str(tmp_path))
    linked = read_trace(file)
    truth = trace_from_columns(ingest.read(str(both / "w.1.pt.trace.json")), worker="w")
    assert len(truth.host_calls) > 300
    assert list(linked.host_calls["name"]) == list(truth.host_calls["name"])
    names = truth.host_calls["name"].tolist()
    differing = {
        name
        for name, ours, theirs in zip(names, inputs_of(linked), inputs_of(truth), strict=True)
        if ours != theirs
    }
    assert differing == ROUNDED
    pd.testing.assert_frame_equal(operator_table(linked), operator_table(truth))


@pytest.mark.recording
def test_the_script_records_a_pair_that_links(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = SAMPLE_LOGS / "record" / "execution_trace.py"
    command = [sys.executable, str(script), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    (file,) = discover.at(str(tmp_path))
    trace = read_trace(file)
    assert trace.execution_trace is not None
    assert trace.execution_trace.linked_count == trace.execution_trace.call_count > 2000
    has = trace.host_calls["input_dims"].notna()
    assert has.sum() > 0.8 * len(has)
