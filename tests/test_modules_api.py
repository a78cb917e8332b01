"""What the API tells of modules."""

from pathlib import Path
from typing import Any

import flask.testing

from logs import write_trace
from stepscope.api.app import create_app
from stepscope.api.endpoints import modules as api_modules
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from tracebuild import Row

US = 1000
NAME = "worker0.1700000000000.pt.trace.json.gz"


class AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


class Asked:
    """One recording's answers."""

    def __init__(self, tmp_path: Path, *rows: Row) -> None:
        write_trace(tmp_path / "log" / "run" / NAME, rows)
        directory = LogDirectory(path=str(tmp_path / "log"))
        catalog = Catalog([directory], CatalogOptions(executor=AtOnce(), reader=InProcessReader()))
        catalog.scan()
        catalog.start_reading()
        self.client: flask.testing.FlaskClient = create_app(catalog).test_client()
        (run,) = self.client.get("/api/runs").get_json()["runs"]
        self.trace = run["workers"][0]["spans"][0]["trace"]

    def __call__(self, path: str, **parameters: Any) -> Any:
        return self.client.get(
            f"/api/traces/{self.trace}/{path}", query_string=parameters
        ).get_json()


def _module(name: str, start: float, duration: float) -> Row:
    return ["python_function", f"nn.Module: {name}", start, duration]


def _forward(start: float, correlation: int) -> list[Row]:
    """Net_0 calls Linear_0 and Linear_1; the first launches a kernel of 7 us."""
    link = {"correlation": correlation}
    return [
        _module("Net_0", start, 100),
        _module("Linear_0", start + 10, 30),
        ["cpu_op", "aten::linear", start + 15, 20],
        ["cuda_runtime", "cudaLaunchKernel", start + 20, 5, link],
        ["kernel", "gemm", start + 60, 7, link],
        _module("Linear_1", start + 50, 20),
        ["cpu_op", "aten::linear", start + 55, 10],
    ]


def _recorded(tmp_path: Path) -> Asked:
    return Asked(
        tmp_path,
        ["user_annotation", "ProfilerStep#1", 0, 200],
        ["user_annotation", "ProfilerStep#2", 200, 200],
        ["user_annotation", "ProfilerStep#3", 400, 200],
        *_forward(0, 1),
        *_forward(200, 2),
    )


def column(table: Any, key: str) -> list[Any]:
    return list(table["values"][key])


def test_modules_are_a_tree_each_followed_by_what_it_calls(tmp_path: Path) -> None:
    answer = _recorded(tmp_path)("modules")
    assert column(answer, "module") == ["Net_0", "Linear_0", "Linear_1"]
    assert answer["parent"] == [-1, 0, 0]
    assert answer["path"] == ["Net_0", "Net_0/Linear_0", "Net_0/Linear_1"]
    assert column(answer, "call_count") == [2, 2, 2]
    assert column(answer, "forward_host_total_ns") == [200 * US, 60 * US, 40 * US]
    assert column(answer, "forward_device_total_ns") == [14 * US, 14 * US, 0]
    assert answer["start_ns"] == [0, 10 * US, 50 * US]
    assert answer["end_ns"] == [100 * US, 40 * US, 70 * US]
    assert len(set(answer["event"])) == 3
    assert (answer["by"], answer["origin"], answer["device_label"]) == (
        "instance",
        "nn.Module",
        "GPU",
    )
    hidden = {each["key"] for each in answer["columns"] if each["hidden"]}
    assert {"backward_host_total_ns", "backward_device_total_ns"} <= hidden


def test_classes_have_all_their_instances(tmp_path: Path) -> None:
    answer = _recorded(tmp_path)("modules", by="class")
    assert column(answer, "class_name") == ["Net", "Linear"]
    assert column(answer, "module_count") == [1, 2]
    assert column(answer, "call_count") == [2, 4]
    assert (answer["parent"], answer["path"], answer["event"]) == ([], [], [])


def test_a_step_has_its_own_part(tmp_path: Path) -> None:
    ask = _recorded(tmp_path)
    answer = ask("modules", start_ns=200 * US, end_ns=400 * US)
    assert column(answer, "call_count") == [1, 1, 1]
    assert answer["start_ns"] == [200 * US, 210 * US, 250 * US]
    empty = ask("modules", start_ns=400 * US, end_ns=600 * US)
    assert (empty["row_count"], empty["values"], empty["parent"]) == (0, {}, [])
    assert "No module ran" in empty["empty"]


def test_what_ran_for_a_module_with_or_without_those_within(tmp_path: Path) -> None:
    ask = _recorded(tmp_path)

    def work(**parameters: Any) -> tuple[Any, ...]:
        answer = ask("modules/work", **parameters)
        operators, kernels = answer["operators"], answer["kernels"]
        return (
            answer["module_count"],
            list(zip(column(operators, "name"), column(operators, "call_count"), strict=True)),
            list(zip(column(kernels, "name"), column(kernels, "total_ns"), strict=True)),
        )

    assert work(row=0) == (3, [("aten::linear", 4)], [("gemm", 14 * US)])
    assert work(row=0, within="false") == (1, [], [])
    assert work(row=2) == (1, [("aten::linear", 2)], [])
    assert work(class_name="Linear") == (2, [("aten::linear", 4)], [("gemm", 14 * US)])
    assert work(row=1, start_ns=200 * US, end_ns=400 * US) == (
        1,
        [("aten::linear", 1)],
        [("gemm", 7 * US)],
    )


def test_a_module_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    ask = _recorded(tmp_path)
    assert ask("modules/work", row=99)["code"] == "not-found"
    assert ask("modules/work", class_name="Conv2d")["code"] == "not-found"


def test_without_modules_it_says_what_to_record(tmp_path: Path) -> None:
    answer = Asked(tmp_path, ["cpu_op", "aten::mm", 0, 9])("modules")
    assert (answer["code"], "with_stack=True" in answer["hint"]) == ("not-recorded", True)


def test_lightnings_names_are_modules(tmp_path: Path) -> None:
    name = "[pl][module]torch.nn.modules.linear.Linear: model.head"
    answer = Asked(tmp_path, ["user_annotation", name, 0, 50], ["cpu_op", "aten::mm", 5, 9])(
        "modules"
    )
    assert (answer["origin"], column(answer, "module")) == ("Lightning", ["model.head"])
    assert column(answer, "forward_host_total_ns") == [50 * US]


def test_more_modules_than_are_sent_are_counted(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(api_modules, "MOST_MODULES", 2)
    answer = _recorded(tmp_path)("modules")
    assert (answer["row_count"], answer["all_row_count"], answer["left_out_count"]) == (2, 3, 1)
    assert len(answer["event"]) == 2
