"""Tables as files: what `stepscope export` writes, exact, in every form, and what it withholds."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import stepscope
from generated import examples
from loading import ROOT, trace_of
from logs import ROWS, write_run, write_trace
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.cli import cli
from stepscope.model.frames import Column
from stepscope.model.trace import Trace
from stepscope.render import table_csv, table_export, table_json
from stepscope.render.table_export import LEADING, schema_of
from stepscope.render.table_file import TableHeader
from stepscope.tables import RunTable, Table, all_tables, find

pytestmark = pytest.mark.frames

CPU_ROWS = tuple(row for row in ROWS if row[0] in {"user_annotation", "cpu_op"})
EXACT_NS = 2**53 + 1
"""No float64 holds it."""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["export", *(str(argument) for argument in arguments)])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_run(tmp_path / "log" / "first", "a", "b")
    write_trace(tmp_path / "log" / "second" / "w.1.pt.trace.json", distributedInfo={"rank": 3})
    return tmp_path / "log"


def test_what_is_no_file_is_written_to_and_stays(log: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert run(log / "first", "--table", "trends", "--output", pipe).exit_code == 0
    assert os.read(reader, 1 << 16).startswith(b"run,worker,span,rank,")
    os.close(reader)
    assert pipe.is_fifo()


def test_reasons_go_on_a_sentence_and_leave_its_end_to_who_tells_them() -> None:
    trace = trace_of(CPU_ROWS)
    reasons = set()
    for table in all_tables().values():
        try:
            table.part(trace) if isinstance(table, RunTable) else table.build(trace)
        except MissingDataError as missing:
            reasons.add(missing.reason)
    assert reasons
    assert not [each for each in reasons if each[:1].isupper() or each.endswith(".")]


def test_the_device_of_standard_output_is_a_pipe_like_others(log: Path) -> None:
    command = [sys.executable, "-m", "stepscope", "export", "--table", "trends", str(log / "first")]
    done = subprocess.run([*command, "-o", "/dev/stdout"], capture_output=True, check=True)
    assert done.stdout.startswith(b"run,worker,span,rank,")


def test_what_a_link_leads_to_is_written(log: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to("real.csv")
    assert run(log / "first", "--table", "trends", "--output", link).exit_code == 0
    assert link.is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("run,worker,span,rank,")


def test_a_name_that_ends_in_gz_makes_a_gzip_file(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "trends.csv.gz"
    assert run(log / "first", "--table", "trends", "--output", path).exit_code == 0
    assert list(pd.read_csv(path)["worker"].unique()) == ["a", "b"]


def test_where_nothing_can_be_written_the_path_that_was_given_is_named(
    log: Path, tmp_path: Path
) -> None:
    path = tmp_path / "nowhere" / "trends.csv"
    result = run(log / "first", "--table", "trends", "--output", path)
    assert result.exit_code == 2
    assert result.stderr == f"stepscope: {path}: No such file or directory\n"


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The known tables, to which a test may add its own."""
    known: dict[str, Any] = dict(all_tables())
    monkeypatch.setattr("stepscope.tables.all_tables", lambda: known)
    return known


def of(frame: pd.DataFrame, *columns: Column, missing: str = "") -> Table:
    def build(trace: Trace) -> pd.DataFrame:
        if trace.worker == missing:
            msg = "nothing was recorded"
            raise MissingDataError(msg, "profile(everything=True)")
        return frame

    return Table(title="T", meaning="One row per thing.", schema=columns, build=build)


def test_csv_has_a_header_and_each_recordings_rows(log: Path) -> None:
    result = run(log, "--table", "kernels")
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["run"], row["worker"], row["span"], row["rank"]) for row in rows] == [
        ("first", "a", "1", ""),
        ("first", "b", "1", ""),
        ("second", "w", "1", "3"),
    ]
    assert [(row["name"], row["total_ns"]) for row in rows] == [("gemm", "16000000")] * 3


def test_json_says_what_its_columns_hold(log: Path) -> None:
    document = json.loads(run(log, "--table", "kernels", "--format", "json").stdout)
    assert (document["schema"], document["table"], document["withheld"]) == (1, "kernels", [])
    schema = schema_of(find("kernels"))
    assert document["columns"] == [vars(column) for column in schema]
    assert [list(row) for row in document["rows"]] == [[c.name for c in schema]] * 3
    first = document["rows"][0]
    assert (first["total_ns"], first["blocks_per_sm"]) == (
        16_000_000,
        None,
    )


def test_parquet_keeps_types_units_and_meanings(log: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "kernels.parquet"
    assert run(log, "--table", "kernels", "--format", "parquet", "-o", path).exit_code == 0
    written = pq.read_table(path)
    assert written.column("total_ns").to_pylist() == [16_000_000] * 3
    assert written.column("rank").to_pylist() == [None, None, 3]
    described = {
        field.name: {key.decode(): text.decode() for key, text in field.metadata.items()}
        for field in written.schema
    }
    for column in schema_of(find("kernels")):
        assert described[column.name] == {"unit": column.unit, "meaning": column.meaning}
    assert written.schema.metadata[b"stepscope.table"] == b"kernels"


def test_whole_numbers_are_exact_in_every_form(
    log: Path, tmp_path: Path, tables: dict[str, Any]
) -> None:
    import pyarrow.parquet as pq

    frame = pd.DataFrame({"at_ns": np.array([EXACT_NS], dtype=np.int64)})
    tables["exact"] = of(frame, Column("at_ns", "int64", "ns", "When."))
    folder = log / "first"
    assert f"first,a,1,,{EXACT_NS}" in run(folder, "--table", "exact").stdout
    document = json.loads(run(folder, "--table", "exact", "--format", "json").stdout)
    assert [row["at_ns"] for row in document["rows"]] == [EXACT_NS] * 2
    path = tmp_path / "exact.parquet"
    run(folder, "--table", "exact", "--format", "parquet", "-o", path)
    assert pq.read_table(path).column("at_ns").to_pylist() == [EXACT_NS] * 2


@pytest.mark.parametrize(
    ("ids", "cells"), [([3.0, np.nan], ["3", ""]), ([0.5, 2.0], ["0.5", "2.0"])]
)
def test_an_id_is_a_whole_number_also_where_others_are_missing(
    log: Path, tables: dict[str, Any], ids: list[float], cells: list[str]
) -> None:
    frame = pd.DataFrame({"peer": np.array(ids)})
    tables["ids"] = of(frame, Column("peer", "float64", "id", "A rank."))
    lines = run(log / "second", "--table", "ids").stdout.splitlines()
    assert [line.split(",")[-1] for line in lines[1:]] == cells


TEXT = Column("text", "object", "text", "A text.")
NUMBER = Column("number", "float64", "count", "A number.")
ABOUT = TableHeader(table="t", title="T", meaning="M.", schema=(TEXT, NUMBER), version="0")
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
numbers = st.floats(allow_infinity=False)


@examples(200)
@given(st.lists(st.tuples(texts, numbers), max_size=8))
def test_csv_gives_back_what_went_in(rows: list[tuple[str | None, float]]) -> None:
    frame = _frame(rows)
    written = _whole(table_csv, frame)
    header, *found = csv.reader(io.StringIO(written.decode(), newline=""))
    assert header == ["text", "number"]
    for (text, number), (cell, digits) in zip(rows, found, strict=True):
        assert not cell or cell[0] not in "=+-@\t\r"
        assert cell.removeprefix("'") == (text or "").removeprefix("'")
        assert digits == "" if np.isnan(number) else float(digits) == number


@examples(200)
@given(st.lists(st.tuples(texts, numbers), max_size=8))
def test_json_gives_back_what_went_in(rows: list[tuple[str | None, float]]) -> None:
    found = json.loads(_whole(table_json, _frame(rows)))["rows"]
    wanted = [
        {"text": text, "number": None if np.isnan(number) else number} for text, number in rows
    ]
    assert found == wanted


def _frame(rows: list[tuple[str | None, float]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "text": pd.Series([text for text, _ in rows], dtype=object),
            "number": np.array([number for _, number in rows], dtype=np.float64),
        }
    )


def _whole(writer: table_export.Writer, frame: pd.DataFrame) -> bytes:
    part, whole = io.BytesIO(), io.BytesIO()
    writer.write_part(frame, ABOUT.schema, part)
    part.seek(0)
    writer.join(ABOUT, [part] if len(frame) else [], whole)
    return whole.getvalue()


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_a_formula_is_text_in_csv_and_itself_in_json(
    log: Path, tables: dict[str, Any], dtype: str
) -> None:
    evil = "=HYPERLINK(1)"
    names = pd.Series([evil, "-1", None, " \uff1d1"], dtype=object)
    frame = pd.DataFrame({"name": names if dtype == "object" else names.astype("category")})
    tables["evil"] = of(frame, Column("name", dtype, "text", "A name."))
    lines = run(log / "second", "--table", "evil").stdout.splitlines()
    assert lines[1:] == [
        "second,w,1,3,'=HYPERLINK(1)",
        "second,w,1,3,'-1",
        "second,w,1,3,",
        "second,w,1,3,' \uff1d1",
    ]
    found = json.loads(run(log / "second", "--table", "evil", "--format", "json").stdout)
    assert [row["name"] for row in found["rows"]] == [evil, "-1", None, " \uff1d1"]


def test_a_recording_without_the_table_is_told_with_its_remedy(
    log: Path, tables: dict[str, Any]
) -> None:
    frame = pd.DataFrame({"n": np.array([1], dtype=np.int64)})
    column = Column("n", "int64", "count", "A count.")
    tables["some"] = of(frame, column, missing="b")
    result = run(log / "first", "--table", "some", "--format", "json")
    assert result.exit_code == 0
    assert result.stderr == (
        "stepscope: some: withheld for first/b span 1: nothing was recorded. "
        "To record it: profile(everything=True).\n"
    )
    document = json.loads(result.stdout)
    assert [row["worker"] for row in document["rows"]] == ["a"]
    assert [(each["worker"], each["remedy"]) for each in document["withheld"]] == [
        ("b", "profile(everything=True)")
    ]


def test_a_table_that_no_recording_has_is_not_written(
    log: Path, tables: dict[str, Any], tmp_path: Path
) -> None:
    column = Column("n", "int64", "count", "A count.")
    tables["none"] = of(pd.DataFrame(), column, missing="w")
    out = tmp_path / "out"
    both = run(log / "second", "--table", "none", "--table", "kernels", "-o", out)
    assert both.exit_code == 1
    assert [path.name for path in out.iterdir()] == ["kernels.csv"]
    assert run(log / "second", "--table", "none").exit_code == 2


def test_a_bug_in_one_table_costs_that_table_of_that_recording(
    log: Path, tables: dict[str, Any], tmp_path: Path
) -> None:
    def fail(trace: Trace) -> pd.DataFrame:
        if trace.worker == "a":
            raise ZeroDivisionError
        return find("kernels").build(trace)  # type: ignore[arg-type]

    kernels = find("kernels")
    tables["odd"] = Table(title="T", meaning="M.", schema=kernels.schema, build=fail)
    out = tmp_path / "out"
    result = run(log / "first", "--table", "odd", "--table", "kernels", "-o", out)
    assert result.exit_code == 0
    assert "ZeroDivisionError" in result.stderr
    lines = {path.name: len(path.read_text().splitlines()) for path in out.iterdir()}
    assert lines == {"odd.csv": 2, "kernels.csv": 3}


def test_a_table_of_a_run_is_made_of_all_its_recordings(log: Path, tables: dict[str, Any]) -> None:
    tables["ranks"] = RunTable(
        title="T",
        meaning="One row a run.",
        schema=(Column("recording_count", "int64", "count", "How many."),),
        part=lambda trace: trace.worker,
        build=lambda parts: pd.DataFrame({"recording_count": np.array([len(parts)])}),
    )
    lines = run(log, "--table", "ranks").stdout.splitlines()
    assert lines == ["run,recording_count", "first,2", "second,1"]


def test_rows_from_another_machine_that_do_not_fit_the_disk_cost_themselves(tmp_path: Path) -> None:
    (tmp_path / "steps.full").symlink_to("/dev/full")
    sent = {
        "steps": table_export.SentRows(name="steps.full", content=b"1,2", row_count=1),
        "kernels": table_export.SentRows(name="../kernels.1", content=b"3", row_count=1),
    }
    landed = table_export.store_sent_rows(sent, str(tmp_path))
    assert isinstance(landed["steps"], table_export.FailedTable)
    assert "There is no space to write the result" in landed["steps"].problem.message
    assert landed["kernels"] == table_export.Rows(path=str(tmp_path / "kernels.1"), row_count=1)
    assert (tmp_path / "kernels.1").read_bytes() == b"3"


def test_an_unreadable_file_costs_itself(log: Path) -> None:
    (log / "first" / "b.2.pt.trace.json").write_text("nonsense")
    result = run(log / "first", "--table", "kernels")
    assert result.exit_code == 0
    assert result.stderr.count("\n") == 1
    assert len(result.stdout.splitlines()) == 3


def test_recordings_can_be_chosen(log: Path) -> None:
    def workers(*choice: str) -> list[str]:
        found = csv.DictReader(io.StringIO(run(log, "--table", "kernels", *choice).stdout))
        return [row["worker"] for row in found]

    assert workers("--run", "first") == ["a", "b"]
    assert workers("--worker", "w", "--worker", "b") == ["b", "w"]
    assert workers("--span", "1") == ["a", "b", "w"]
    assert (
        "there is no run 'x'. There is first, second"
        in run(log, "--table", "kernels", "--run", "x").stderr
    )


def test_processes_give_the_same_file(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = run(log, "--table", "operators")
    monkeypatch.setattr("stepscope.cli.file_reading.WORTH_PROCESSES_BYTES", 0)
    assert run(log, "--table", "operators", "--jobs", "2").stdout == here.stdout


def test_every_table_can_go_into_one_folder(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(log, "--all", "-o", out).exit_code in {0, 1}
    names = {path.stem for path in out.iterdir()}
    assert {"operators", "kernels", "host-calls"} <= names <= set(all_tables())
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["log"], "give a table"),
        (["--table", "kernels"], "give a PATH"),
        (["log", "--table", "kernels", "--table", "operators"], "several tables need a folder"),
        (["log", "--table", "kernel"], "Did you mean kernels"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_read(
    arguments: list[str], reason: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_parquet_without_pyarrow_names_the_extra(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("stepscope.render.table_parquet.find_spec", lambda _: None)
    result = run(log, "--table", "kernels", "--format", "parquet", "-o", log / "x.parquet")
    assert result.exit_code == 2
    assert "pip install 'stepscope[parquet]'" in result.stderr


def test_every_table_is_listed_and_described() -> None:
    listed = run("--list").stdout
    assert [line.split()[0] for line in listed.splitlines() if line[0] != " "] == list(all_tables())
    described = json.loads(run("--list", "--format", "json").stdout)["tables"]
    assert [each["table"] for each in described] == list(all_tables())
    text = run("--describe", "kernels").stdout
    assert all(column.name in text for column in (*LEADING, *find("kernels").schema))
    assert max(map(len, text.splitlines())) <= 80


def test_python_has_the_same_tables(log: Path) -> None:
    folder = log / "first"
    loaded = stepscope.load(folder)
    alone = stepscope.table(loaded.workers[0], "kernels")
    assert list(alone) == [column.name for column in find("kernels").schema]
    together = stepscope.table(loaded, "kernels")
    assert list(together) == [column.name for column in schema_of(find("kernels"))]
    dtypes = {name: str(dtype) for name, dtype in together.dtypes.items()}
    assert dtypes == {column.name: column.dtype for column in schema_of(find("kernels"))}
    assert together["worker"].tolist() == ["a", "b"]
    written = pd.read_csv(io.StringIO(run(folder, "--table", "kernels").stdout))
    assert written["total_ns"].tolist() == together["total_ns"].tolist()
    assert stepscope.all_tables() == all_tables()


def test_python_tells_what_cannot_be_had(log: Path, tables: dict[str, Any]) -> None:
    frame = pd.DataFrame({"n": np.array([1], dtype=np.int64)})
    tables["some"] = of(frame, Column("n", "int64", "count", "A count."), missing="b")
    loaded = stepscope.load(log / "first")
    with pytest.warns(UserWarning, match="some of b, span 1: nothing was recorded"):
        assert stepscope.table(loaded, "some")["worker"].tolist() == ["a"]
    with pytest.raises(MissingDataError, match="nothing was recorded"):
        stepscope.table(loaded.workers[1], "some")
    with pytest.raises(UsageError, match="there is no table"):
        stepscope.table(loaded, "nope")


def test_categories_of_recordings_are_joined() -> None:
    names = stepscope.table(stepscope.load(ROOT / "sample_logs/ranks/balanced"), "host-calls")
    assert names["name"].dtype == "category"
    assert set(names["worker"]) == {"rank0", "rank1"}


def test_tables_are_the_same_where_memory_is_short_and_frames_stay(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ample, short = tmp_path / "ample", tmp_path / "short"
    assert run(log, "--all", "--output", ample).exit_code == 1, "some tables are withheld"
    monkeypatch.setattr(table_export, "MOST_BYTES", 0)
    run(log, "--all", "--output", short)
    assert {path.name: path.read_bytes() for path in short.iterdir()} == {
        path.name: path.read_bytes() for path in ample.iterdir()
    }


def test_released_results_leave_the_frames() -> None:
    loaded = stepscope.load(ROOT / "sample_logs" / "batch_size" / "batch_128")
    trace = loaded.workers[0]
    stepscope.table(loaded, "operators")
    calls, before = trace.host_calls, len(trace.results)
    trace.release_results()
    assert trace.host_calls is calls
    assert len(trace.results) < before
