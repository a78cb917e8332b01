"""What the API tells of memory, and of the memory files beside a run."""

import json
import pickle
from pathlib import Path
from typing import Any

import flask.testing
import pytest

from logs import write_trace
from memorybuild import memory, with_totals
from snapshotbuild import Allocator
from stepscope.api import memory_files
from stepscope.api.app import create_app
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from tracebuild import Row

US = 1000
NAME = "worker0.1700000000000.pt.trace.json.gz"
STEPS: tuple[Row, ...] = (
    ["user_annotation", "ProfilerStep#1", 0, 4],
    ["user_annotation", "ProfilerStep#2", 4, 4],
)


class AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


class Asked:
    """One run's answers."""

    def __init__(self, folder: Path) -> None:
        directory = LogDirectory(path=str(folder))
        catalog = Catalog([directory], CatalogOptions(executor=AtOnce(), reader=InProcessReader()))
        catalog.scan()
        catalog.start_reading()
        self.client: flask.testing.FlaskClient = create_app(catalog).test_client()
        (run,) = self.client.get("/api/runs").get_json()["runs"]
        self.run = run["id"]
        self.trace = run["workers"][0]["spans"][0]["trace"]

    def of_trace(self, path: str, **parameters: Any) -> Any:
        return self.client.get(
            f"/api/traces/{self.trace}/{path}", query_string=parameters
        ).get_json()

    def of_run(self, path: str) -> Any:
        return self.client.get(f"/api/runs/{self.run}/{path}").get_json()


def asked(tmp_path: Path, *rows: Row, **metadata: object) -> Asked:
    write_trace(tmp_path / "log" / "run" / NAME, rows, **metadata)
    return Asked(tmp_path / "log")


def recorded(tmp_path: Path) -> Asked:
    """Two operators in two steps on CUDA 0, which held 1000 bytes before."""
    events = ["+512@1", "+256@2", "-512@1", "+64@3", "+8@4", "-8@4", "+16@5"]
    return asked(
        tmp_path,
        *STEPS,
        ["python_function", "train.py(3): main", 0, 9],
        ["python_function", "nn.Module: Linear_0", 0, 1.5],
        ["cpu_op", "aten::mm", 0, 2.5],
        ["cpu_op", "aten::add", 2.5, 10],
        ["cuda_runtime", "cudaLaunchKernel", 3, 1, {"correlation": 1}],
        ["kernel", "gemm", 3.5, 2, {"correlation": 1}],
        ["cuda_runtime", "cudaLaunchKernel", 7, 0.5, {"correlation": 2}],
        ["kernel", "gemm", 7.5, 2, {"correlation": 2}],
        *with_totals(events, reserved=4096, before=1000),
        deviceProperties=[{"id": 0, "totalGlobalMem": 8192}],
    )


def column(table: Any, key: str) -> list[Any]:
    return list(table["values"][key])


def test_the_curve_is_every_event_with_its_peak_and_its_steps(tmp_path: Path) -> None:
    answer = recorded(tmp_path).of_trace("memory/curve")
    assert answer["devices"] == [
        {
            "id": "CUDA 0",
            "peak_bytes": 1768,
            "peak_ns": 1 * US,
            "most_reserved_bytes": 4096,
            "capacity_bytes": 8192,
            "event_count": 7,
            "has_totals": True,
        }
    ]
    assert answer["levels"] == {
        "time_ns": [place * US for place in range(7)],
        "allocated_bytes": [1512, 1768, 1256, 1320, 1328, 1320, 1336],
        "reserved_bytes": [4096] * 7,
        "event_count": 7,
    }
    assert (answer["device"], answer["start_ns"], answer["end_ns"]) == ("CUDA 0", 0, 8 * US)
    assert answer["peak"] == {"time_ns": 1 * US, "bytes": 1768}
    assert answer["steps"] == [
        {"number": 1, "start_ns": 0, "end_ns": 4 * US},
        {"number": 2, "start_ns": 4 * US, "end_ns": 8 * US},
    ]
    assert (answer["ooms"], answer["notes"]) == ([], [])


def test_a_part_of_the_curve_begins_with_what_was_held_before(tmp_path: Path) -> None:
    ask = recorded(tmp_path)
    answer = ask.of_trace("memory/curve", start_ns=2500, end_ns=4500)
    assert answer["levels"]["time_ns"] == [2500, 3000, 4000]
    assert answer["levels"]["allocated_bytes"] == [1256, 1320, 1328]
    assert answer["peak"] == {"time_ns": 4000, "bytes": 1328}
    assert answer["levels"]["event_count"] == 2


def test_many_events_are_drawn_with_few_points_and_the_exact_peak(tmp_path: Path) -> None:
    events = [f"+{1 + n % 97}@{n}" for n in range(4000)]
    peak = ["+100000@9999", "-100000@9999"]
    rows = with_totals([*events[:2000], *peak, *events[2000:]])
    answer = asked(tmp_path, *rows).of_trace("memory/curve", pixels=10)
    assert len(answer["levels"]["time_ns"]) <= 40
    assert answer["peak"]["bytes"] == max(answer["levels"]["allocated_bytes"])
    assert answer["peak"]["time_ns"] == 2000 * US
    assert answer["levels"]["event_count"] == 4002


def test_running_out_of_memory_is_told_with_its_cause(tmp_path: Path) -> None:
    fields = {"Bytes": 9000, "Device Type": 1, "Device Id": 0, "Total Reserved": 20000}
    out = ["cpu_instant_event", "[OutOfMemory]", 3, None, {**fields, "Total Allocated": 5000}]
    ask = asked(tmp_path, ["cpu_op", "aten::mm", 0, 9], *with_totals(["+8@1"]), out)
    answer = ask.of_trace("memory/curve")
    assert answer["oom_count"] == 1
    (oom,) = answer["ooms"]
    assert oom | {"event": 0} == {
        "event": 0,
        "time_ns": 3 * US,
        "asked_bytes": 9000,
        "unused_bytes": 15000,
        "cause": "fragmented",
        "operator": "aten::mm",
    }


def test_holders_at_the_peak_at_a_moment_and_in_a_time(tmp_path: Path) -> None:
    ask = recorded(tmp_path)

    def held(**parameters: Any) -> tuple[Any, ...]:
        answer = ask.of_trace("memory/holders", **parameters)
        names = column(answer, "name"), column(answer, "held_bytes")
        rows = {name: size for name, size in zip(*names, strict=True) if size}
        assert sum(rows.values()) == answer["held_bytes"]
        return answer["moment_ns"], answer["is_peak"], rows

    before = {"allocated before the recording, held beyond it": 1000}
    assert held() == (1 * US, True, {"aten::mm": 768, **before})
    assert held(moment_ns=4200) == (4200, False, {"aten::mm": 256, "aten::add": 72, **before})
    # what that time began with counts, and it is said when
    assert held(start_ns=4500, end_ns=5500)[:2] == (4500, False)
    assert held(by="module")[2] == {"Linear_0": 768, **before}
    assert held(by="stack")[2] == {"train.py(3): main": 768, **before}
    lives = {"freed in the step that allocated it": 512, "held to the recording's end": 256}
    assert held(by="lifetime")[2] == {**lives, **before}


def test_what_no_trace_tells_is_refused_with_the_line_that_records_it(tmp_path: Path) -> None:
    ask = asked(tmp_path, *with_totals(["+8@1"]))
    category = ask.of_trace("memory/holders", by="category")
    assert category["code"] == "not-recorded"
    assert "export_memory_timeline" in category["hint"]
    stack = ask.of_trace("memory/holders", by="stack")
    assert (stack["code"], "with_stack=True" in stack["hint"]) == ("not-recorded", True)


def test_a_recording_without_memory_says_how_it_is_recorded(tmp_path: Path) -> None:
    ask = asked(tmp_path, ["cpu_op", "aten::mm", 0, 9])
    for path in ("curve", "holders", "allocations", "operators", "growth", "fragmentation"):
        answer = ask.of_trace(f"memory/{path}")
        assert (path, answer["code"]) == (path, "not-recorded")
        assert "profile_memory=True" in answer["hint"]


def test_another_device_is_not_found_and_the_accelerator_goes_first(tmp_path: Path) -> None:
    cpu = memory(0, "+99999@7", device=-1, type_code=0, **{"Total Allocated": 99999})
    ask = asked(tmp_path, cpu, *with_totals(["+8@1"]))
    answer = ask.of_trace("memory/curve")
    assert [device["id"] for device in answer["devices"]] == ["CUDA 0", "CPU"]
    assert answer["device"] == "CUDA 0"
    assert ask.of_trace("memory/curve", device="CPU")["peak"]["bytes"] == 99999
    assert ask.of_trace("memory/curve", device="CUDA 9")["code"] == "not-found"


def test_allocations_are_the_largest_first_and_the_others_are_counted(tmp_path: Path) -> None:
    answer = recorded(tmp_path).of_trace("memory/allocations", limit=2)
    assert column(answer, "bytes") == [512, 256]
    assert column(answer, "operator") == ["aten::mm", "aten::mm"]
    assert column(answer, "allocated_ns") == [0, 1 * US]
    assert column(answer, "freed_ns") == [2 * US, None]
    assert column(answer, "module") == ["Linear_0", "Linear_0"]
    assert column(answer, "function") == ["train.py(3): main"] * 2
    assert column(answer, "allocated_level_bytes") == [1512, 1768]
    assert column(answer, "address") == ["0x1", "0x2"]
    assert [answer["stacks"][code] for code in answer["stack"]] == ["train.py(3): main"] * 2
    assert (answer["found_count"], answer["found_bytes"]) == (5, 512 + 256 + 64 + 8 + 16)
    assert (answer["all_row_count"], answer["left_out_bytes"]) == (5, 64 + 8 + 16)
    assert answer["largest_bytes"] == 512


@pytest.mark.parametrize(
    ("parameters", "sizes"),
    [
        ({"min_bytes": 16, "max_bytes": 256}, [256, 64, 16]),
        ({"state": "held"}, [256, 64, 16]),
        ({"search": "ADD"}, [64, 16, 8]),
        ({"search": "linear_0"}, [512, 256]),
        ({"sort": "allocated_ns", "descending": "false"}, [512, 256, 64, 8, 16]),
        ({"sort": "freed_ns", "descending": "false"}, [512, 8, 256, 64, 16]),
        ({"sort": "operator", "descending": "false"}, [64, 8, 16, 512, 256]),
        ({"start_ns": 2500, "end_ns": 4500}, [256, 64, 8]),
        ({"start_ns": 2500, "end_ns": 4500, "which": "born"}, [64, 8]),
        ({"start_ns": 1500, "end_ns": 4500, "which": "freed"}, [512]),
        ({"state": "earlier"}, []),
    ],
)
def test_allocations_that_fit(tmp_path: Path, parameters: dict[str, Any], sizes: list[int]) -> None:
    answer = recorded(tmp_path).of_trace("memory/allocations", **parameters)
    assert column(answer, "bytes") == sizes
    assert answer["found_bytes"] == sum(sizes)
    assert bool(answer["empty"]) is True


def test_no_other_column_is_sorted_by(tmp_path: Path) -> None:
    assert recorded(tmp_path).of_trace("memory/allocations", sort="price")["code"] == "bad-request"


def test_what_operators_allocate_in_a_time(tmp_path: Path) -> None:
    ask = recorded(tmp_path)
    whole = ask.of_trace("memory/operators")
    assert column(whole, "operator") == ["aten::mm", "aten::add"]
    assert column(whole, "allocation_bytes") == [768, 88]
    assert column(whole, "increase_bytes") == [256, 80]
    part = ask.of_trace("memory/operators", start_ns=4 * US, end_ns=8 * US)
    # `aten::add` began before the time: what happened in it is of no operator that did
    assert part["row_count"] == 0
    assert "in this time range" in part["empty"]


def test_growth_over_the_steps(tmp_path: Path) -> None:
    answer = recorded(tmp_path).of_trace("memory/growth")
    assert (answer["step_count"], answer["total_growth_bytes"]) == (2, 16)
    assert column(answer["steps"], "end_bytes") == [1320, 1336]
    assert column(answer["steps"], "left_bytes") == [256 + 64, 16]
    assert "device" not in answer["steps"]["values"]
    assert answer["leaks"]["row_count"] == 0


def test_without_steps_growth_says_how_they_are_marked(tmp_path: Path) -> None:
    answer = asked(tmp_path, *with_totals(["+8@1"])).of_trace("memory/growth")
    assert (answer["code"], "profiler.step()" in answer["hint"]) == ("not-recorded", True)


def test_how_much_of_the_reserved_memory_lies_unused(tmp_path: Path) -> None:
    ask = recorded(tmp_path)
    answer = ask.of_trace("memory/fragmentation")
    assert (answer["most_reserved_bytes"], answer["unused_bytes"]) == (4096, 4096 - 1512)
    assert answer["over_time_bytes"] == [
        4096 - level for level in (1512, 1768, 1256, 1320, 1328, 1320, 1336)
    ]
    assert answer["most_unused_bytes"] == max(answer["over_time_bytes"])
    cpu = asked(tmp_path / "cpu", memory(0, "+8@1", device=-1, type_code=0))
    assert cpu.of_trace("memory/fragmentation")["code"] == "not-recorded"


def with_files(tmp_path: Path) -> Asked:
    """A run with a snapshot, a timeline, two that are neither, and one that wants to run code."""
    folder = tmp_path / "log" / "run"
    write_trace(folder / NAME, (["cpu_op", "aten::mm", 0, 9],))
    allocator = Allocator()
    first = allocator.alloc(1000, "train", "net")
    allocator.alloc(5000, "train", "loss")
    allocator.free(first)
    (folder / "snapshot.pickle").write_bytes(pickle.dumps(allocator.snapshot()))
    sizes = [[0, 10, 0, 0, 0, 0, 0, 0, 0], [0, 10, 0, 0, 0, 30, 0, 0, 0], [0] * 9]
    (folder / "memory.json").write_text(json.dumps([[5, 7, 9], sizes]))
    (folder / "notes.json").write_text('{"rank": 0}')
    (folder / "model.txt").write_text("nothing of ours")
    (folder / "evil.pickle").write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR.")
    return Asked(tmp_path / "log")


def test_memory_files_beside_a_run_are_found_by_what_is_in_them(tmp_path: Path) -> None:
    files = with_files(tmp_path).of_run("memory-files")["files"]
    assert [(file["name"], file["what"], file["problem"]) for file in files] == [
        ("evil.pickle", "snapshot", ""),
        ("memory.json", "timeline", ""),
        ("snapshot.pickle", "snapshot", ""),
    ]


def _report(ask: Asked, name: str) -> Any:
    (file,) = [each for each in ask.of_run("memory-files")["files"] if each["name"] == name]
    return ask.of_run(f"memory-files/{file['id']}")


def test_a_timeline_is_a_curve_of_its_categories(tmp_path: Path) -> None:
    answer = _report(with_files(tmp_path), "memory.json")
    (curve,) = answer["curves"]
    assert (curve["is_stacked"], curve["at"]) == (True, [0, 2000, 4000])
    assert {line["id"]: line["bytes"] for line in curve["lines"]} == {
        "parameter": [10, 10, 0],
        "activation": [0, 30, 0],
    }
    assert "At most 40 B were held" in answer["summary"][0]
    (table,) = answer["tables"]
    assert column(table, "category") == ["activation", "parameter"]


def test_a_snapshot_is_its_history_and_its_tables(tmp_path: Path) -> None:
    answer = _report(with_files(tmp_path), "snapshot.pickle")
    (curve,) = answer["curves"]
    lines = {line["id"]: line["bytes"] for line in curve["lines"]}
    assert max(lines["requested"]) == 6000
    assert lines["requested"][-1] == 5000
    titles = [table["title"] for table in answer["tables"]]
    assert titles[:3] == ["Peak of each device", "Memory at the peak", "Memory held at the end"]
    held = answer["tables"][2]
    assert column(held, "held_bytes") == [5000]
    assert "loss" in column(held, "stack")[0]


def test_nothing_in_a_pickle_is_run_and_the_reason_is_told(tmp_path: Path) -> None:
    answer = _report(with_files(tmp_path), "evil.pickle")
    assert answer["code"] == "unreadable"
    assert "refused" in answer["message"]


def test_a_file_beyond_the_bound_is_for_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_files, "MOST_FILE_BYTES", 10)
    ask = with_files(tmp_path)
    problems = [file["problem"] for file in ask.of_run("memory-files")["files"]]
    assert all("stepscope memory FILE" in problem for problem in problems)
    assert "stepscope memory FILE" in _report(ask, "memory.json")["hint"]


def test_a_file_is_asked_for_by_its_id_alone(tmp_path: Path) -> None:
    ask = with_files(tmp_path)
    for name in ("snapshot.pickle", "..%2Fother.pickle", "000000000000"):
        assert ask.of_run(f"memory-files/{name}")["code"] == "not-found"
