"""`stepscope query`: SQL over the public tables, read-only and bounded."""

import csv
import io
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import stepscope
from logs import write_run, write_trace
from stepscope.base.errors import QueryError
from stepscope.cli import cli
from stepscope.queries import statement
from stepscope.queries.examples import EXAMPLES
from stepscope.queries.execution import QueryLimits, QueryResult, check_query, run_query
from stepscope.queries.sandbox import SandboxOutcome, SandboxRequest, TableSource
from stepscope.queries.sandbox import outcome as run_in_sandbox
from stepscope.queries.statement import KEYWORDS, quoted, sql_name, table_names
from stepscope.render import query_rows
from stepscope.render.table_export import schema_of
from stepscope.tables import all_tables, find

SAMPLE_LOGS = Path(__file__).resolve().parents[1] / "sample_logs"
SAMPLE = SAMPLE_LOGS / "synthetic_dataloader"
LIMITS = QueryLimits(row_count=100, seconds=30, size_bytes=2**20, memory_bytes=256 * 2**20)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["query", *(str(argument) for argument in arguments)])


def rows(*arguments: str | Path) -> list[dict[str, Any]]:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    document: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return document


def outcome(sql: str, folder: Path) -> SandboxOutcome:
    """Return the outcome of a query, run by the process's program in this process."""
    request = SandboxRequest(
        sql=sql,
        tables={"kernels": TableSource({"name": "string", "total_ns": "int64"})},
        output=str(folder / "rows.arrow"),
        row_count=10,
        size_bytes=10**6,
        seconds=10,
        memory_bytes=2**28,
        threads=1,
    )
    return run_in_sandbox(request)


def values(result: QueryResult) -> list[tuple[object, ...]]:
    return list(query_rows.value_rows(result.rows))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_run(tmp_path / "log" / "first", "a", "b")
    write_trace(tmp_path / "log" / "second" / "w.1.pt.trace.json", distributedInfo={"rank": 3})
    return tmp_path / "log"


def test_a_query_reads_the_tables_of_all_traces(log: Path) -> None:
    sql = "select run, worker, span, rank, name, total_ns from kernels order by run, worker"
    leading = [("first", "a", "1", None), ("first", "b", "1", None), ("second", "w", "1", 3)]
    assert [tuple(row.values()) for row in rows(log, sql)] == [
        (*of_trace, "gemm", 16_000_000) for of_trace in leading
    ]
    assert rows(log, "select worker from kernels", "--run", "second") == [{"worker": "w"}]


@pytest.mark.parametrize("name", ["kernel_events", '"kernel-events"', "KERNEL_EVENTS"])
def test_tables_have_underscores_or_their_exact_names(log: Path, name: str) -> None:
    assert rows(log / "second", f"summarize {name}")[0]["count"] == 4


def test_a_table_of_a_run_is_built_per_run(log: Path) -> None:
    sql = "select run, count(*) as n from ranks group by run order by run"
    assert rows(log, sql)[0] == {"run": "first", "n": 2}


@pytest.mark.frames
def test_a_query_equals_the_same_computation_with_pandas() -> None:
    frame = stepscope.table(stepscope.load(str(SAMPLE / "fault")), "kernel-events")
    expected = (
        frame.groupby("name", observed=True)
        .agg(calls=("event", "size"), total=("duration_ns", "sum"), mean=("duration_ns", "mean"))
        .sort_values(["total"], ascending=False)
        .reset_index()
    )
    sql = (
        "select name, count(*) as calls, sum(duration_ns) as total, avg(duration_ns) as mean "
        "from kernel_events group by name order by total desc"
    )
    result = pd.DataFrame(rows(SAMPLE / "fault", sql))
    assert len(result) > 5
    assert result["name"].tolist() == expected["name"].astype(str).tolist()
    for column in ("calls", "total"):
        assert result[column].tolist() == expected[column].tolist()
    assert result["mean"].tolist() == pytest.approx(expected["mean"].tolist())


@pytest.mark.frames
def test_a_query_of_everything_is_the_exported_table(tmp_path: Path) -> None:
    path = tmp_path / "operators.csv"
    command = ["export", str(SAMPLE), "--table", "operators", "-o", str(path)]
    assert CliRunner().invoke(cli, command).exit_code == 0
    assert run(SAMPLE, "from operators", "--format", "csv").stdout == path.read_text()


def test_only_the_tables_of_the_query_are_computed() -> None:
    def tables_of(sql: str) -> tuple[str, ...]:
        return check_query(sql, LIMITS)

    assert tables_of("select 1") == ()
    assert tables_of('from Kernels k join "kernel-events" e using (name)') == (
        "kernels",
        "kernel-events",
    )
    nested = "with s as (from steps) select (select max(wait_ns) from ranks) from s"
    assert set(tables_of(nested)) == {"ranks", "steps"}
    assert tables_of("explain analyze select * from steps") == ("steps",)
    assert tables_of("summarize steps") == ("steps",)
    assert tables_of("describe steps") == ()
    assert tables_of("select 'kernels', steps.a from (select 1 as a) as steps") == ()


def test_names_that_no_trace_is_read_for_are_answered_at_once(tmp_path: Path) -> None:
    described = rows(tmp_path / "nowhere", "describe kernel_events")
    assert [row["column_name"] for row in described] == [
        column.name for column in schema_of(find("kernel-events"))
    ]
    shown = {row["name"] for row in rows(tmp_path / "nowhere", "show tables")}
    assert shown == set(table_names())


def test_text_has_columns_and_says_how_many_rows_there_are(log: Path) -> None:
    result = run(log, "select range, range / 3 as third from range(1000)")
    lines = result.stdout.splitlines()
    assert (lines[0], lines[3], len(lines)) == ("range     third", "    2  0.666667", 41)
    assert result.stderr == ("stepscope: the first 40 of 1,000 rows; --limit NUMBER shows more\n")
    assert len(run(log, "from range(1000)", "--limit", "7").stdout.splitlines()) == 8
    assert "of more than 1,000,000 rows" in run(log, "from range(10000000)").stderr


def test_text_is_narrowed_to_a_terminal() -> None:
    sql = "select repeat('long ', 40) as name, 123456 as number, null as unknown"
    result = run_query(sql, LIMITS)
    narrow = query_rows.text(result.rows, width=50).splitlines()
    assert {len(line) for line in narrow} <= set(range(40, 51))
    assert "123456  –" in narrow[1]
    assert len(query_rows.text(result.rows).splitlines()[1]) > 100


def test_a_plan_is_shown_as_duckdb_draws_it(log: Path) -> None:
    plan = run(log / "second", "explain select name from kernels").stdout
    assert "name" in plan
    assert "explain_key" not in plan


def test_csv_and_json_hold_every_type(log: Path) -> None:
    sql = (
        "select 1 as a, 2 as a, true as b, null as c, [1, null] as d, date '2026-01-02' as e, "
        "'nan'::double as f, '=1' as g, 170141183460469231731687303715884105727 as h, 1.5 as i, "
        "{'x': 'y'} as j, interval 1 hour as k"
    )
    [row] = rows(log, sql)
    assert {key: row[key] for key in row if key != "k"} == {
        "a": 1,
        "a_2": 2,
        "b": True,
        "c": None,
        "d": "[1,null]",
        "e": "2026-01-02",
        "f": None,
        "g": "=1",
        "h": "170141183460469231731687303715884105727",
        "i": 1.5,
        "j": '{"x":"y"}',
    }
    [written] = csv.DictReader(io.StringIO(run(log, sql, "--format", "csv").stdout))
    assert (written["b"], written["c"], written["g"], written["i"]) == ("true", "", "'=1", "1.5")


def test_parquet_is_written_to_a_file(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "kernels.parquet"
    sql = "select name, sum(total_ns) as total_ns from kernels group by name"
    assert run(log, sql, "--format", "parquet", "-o", path).exit_code == 0
    table = pq.read_table(path)
    assert table.to_pylist() == [{"name": "gemm", "total_ns": 48_000_000}]
    assert str(table.schema.field("total_ns").type) == "int64"


def test_text_is_written_to_a_file(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    assert run(log, "select 1 as one", "-o", path).stdout == ""
    assert path.read_text() == "one\n  1\n"


MISTAKES = [
    ("select * from kernal_events", 'no table "kernal_events". Did you mean kernel_events'),
    ("select * from kernel-events", 'Write kernel_events, or "kernel-events"'),
    ("select nme from kernels", 'Candidate bindings: "name"'),
    ("select group from collectives", 'write "group" for the column'),
    ("selec 1", 'syntax error at or near "selec"'),
    ("select 1 +", "syntax error at or near"),
    ("select name + 1 from kernels where x", "LINE 1"),
    ("select 1; select 2", "one statement"),
    ("", "one statement"),
    ("/* nothing */", "one statement"),
    ("select " + "(" * 4000 + "1" + ")" * 4000, "expression depth"),
    ("select '" + "x" * 10_000 + "'", "longer than 10,000 characters"),
    ("select cast('x' as int)", "Could not convert string"),
    ("select $a", "parameters"),
    ("select '\udcff'", "not UTF-8"),
]


@pytest.mark.parametrize(("sql", "words"), MISTAKES)
def test_a_mistake_is_explained_before_traces_are_read(
    sql: str, words: str, tmp_path: Path
) -> None:
    result = run(tmp_path / "nowhere", sql)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "nowhere" not in result.stderr


def test_a_position_is_that_in_the_query() -> None:
    with pytest.raises(QueryError) as error:
        check_query("select nme\nfrom kernels", LIMITS)
    assert "LINE 1: select nme" in str(error.value)
    _, line, mark = str(error.value).rstrip().rsplit("\n", 2)
    assert line.index("nme") == mark.index("^")


READING_ONLY = [
    "copy kernels to '{path}'",
    "copy (select 1) to '{path}'",
    "export database '{path}'",
    "attach '{path}'",
    "install httpfs",
    "load httpfs",
    "pragma version",
    "set threads = 8",
    "reset threads",
    "call enable_logging()",
    "create table x as select 1",
    "create macro f() as 1",
    "insert into kernels select * from kernels",
    "update kernels set name = 'x'",
    "delete from kernels",
    "drop view kernels",
    "prepare x as select 1",
    "begin",
    "checkpoint",
    "vacuum",
    "use memory",
    "explain copy (select 1) to '{path}'",
    "explain analyze create table x as select 1",
    "explain (analyze) create table x as select 1",
    "pivot kernels on name using sum(total_ns)",
    "select 1; copy (select 1) to '{path}'",
]


@pytest.mark.parametrize("sql", READING_ONLY)
def test_other_statements_are_refused(sql: str, tmp_path: Path) -> None:
    path = tmp_path / "written"
    with pytest.raises(QueryError, match="one statement that reads"):
        check_query(sql.format(path=path), LIMITS)


@pytest.mark.parametrize("sql", READING_ONLY)
def test_the_database_has_no_files_and_no_settings_either(sql: str, tmp_path: Path) -> None:
    """As if the check of statements were missing."""
    path = tmp_path / "written"
    outcome(sql.format(path=path), tmp_path)  # some succeed, in memory
    assert not path.exists()


FILES = [
    "select * from read_csv('{path}')",
    "select * from read_text('{path}')",
    "select * from read_blob('{path}')",
    "select * from read_json('{path}')",
    "select * from read_parquet('{path}')",
    "select * from glob('/etc/*')",
    "select * from sniff_csv('{path}')",
    "select * from '{path}'",
    "from 'https://example.org/x.parquet'",
    "select * from read_csv('https://example.org/x.csv')",
    "select * from query('from read_text(''{path}'')')",
    "select * from parquet_metadata('{path}')",
    "select * from enable_logging(storage = 'file', storage_config = {{'path': '{path}.d'}})",
    "select * from request",
    "select * from connection",
    "select getenv('HOME')",
]


@pytest.mark.parametrize("sql", FILES)
def test_files_the_network_and_variables_cannot_be_read(sql: str, tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("word\nsecret\n")
    error = outcome(sql.format(path=path), tmp_path).error
    assert re.search("disabled|locked|does not exist", error), error
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "sql",
    [
        "select len(range(200000000))",
        "select length(repeat('x', 2000000000))",
        "select * from range(10000000000) t order by hash(range)",
        "select list(range) from range(10000000000)",
    ],
)
def test_a_query_that_needs_too_much_memory_is_ended(sql: str) -> None:
    with pytest.raises(QueryError, match="of memory"):
        run_query(sql, LIMITS)


def test_a_query_whose_syntax_needs_too_much_memory_is_ended() -> None:
    with pytest.raises(QueryError, match="of memory"):
        check_query("with a as (" * 12 + "select 1", LIMITS)


def test_no_progress_is_drawn_into_the_answer_of_a_long_query() -> None:
    result = run_query("select current_setting('enable_progress_bar')", LIMITS)
    assert values(result) == [(False,)]


def test_a_query_that_takes_too_long_is_ended() -> None:
    limits = QueryLimits(row_count=1, seconds=2, size_bytes=1000, memory_bytes=2**28, threads=1)
    begin = time.monotonic()
    with pytest.raises(QueryError, match="took longer than 2 s"):
        run_query("select count(*) from range(1000000000000) where hash(range) = 1", limits)
    assert time.monotonic() - begin < 10


def test_rows_and_their_size_are_bounded() -> None:
    result = run_query("from range(2000)", LIMITS)
    assert (result.rows.num_rows, result.row_count, result.is_cut) == (100, 2000, True)
    few = QueryLimits(row_count=10**6, seconds=30, size_bytes=1000, memory_bytes=2**28)
    wide = run_query("select repeat('x', 1000) from range(100000)", few)
    assert wide.rows.num_rows < 20_000
    assert (wide.row_count, wide.is_cut) == (100_000, True)


def test_equal_names_and_no_rows() -> None:
    assert values(run_query("select 1 as a, 2 as a", LIMITS)) == [(1, 2)]
    empty = run_query("from kernels", LIMITS)
    assert (empty.row_count, values(empty)) == (0, [])
    assert query_rows.unique_names(["a", "a_2", "a", "a"]) == ["a", "a_2", "a_3", "a_4"]


def test_data_that_was_not_recorded_is_named(log: Path) -> None:
    result = run(log, "select * from modules")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "modules: withheld for first/a span 1 and 2 more" in result.stderr
    assert "with_stack=True" in result.stderr


def test_a_damaged_file_costs_only_its_rows(log: Path) -> None:
    (log / "first" / "c.1.pt.trace.json").write_text("{no trace")
    result = run(log, "select count(*) as n from kernels")
    assert result.stdout == "n\n3\n"
    assert "c.1.pt.trace.json" in result.stderr


@pytest.mark.parametrize("timeout", ["nan", "inf", "1e10"])
def test_a_time_limit_is_one_of_timers(timeout: str) -> None:
    result = run("nowhere", "select 1", "--timeout", timeout)
    assert result.exit_code == 2
    assert "--timeout" in result.stderr


def test_a_path_and_a_query_are_needed(log: Path) -> None:
    for arguments in ((), (log,), ("select 1",)):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "give a PATH and a query" in result.stderr


def test_without_duckdb_the_command_says_how_to_install_it(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    for version in (missing, lambda _: "1.5.0"):
        monkeypatch.setattr(statement, "version", version)
        result = run(log, "select 1")
        assert result.exit_code == 2
        assert 'pip install "stepscope[sql]"' in result.stderr


def test_tables_are_listed_and_described() -> None:
    listed = run("--list").stdout
    assert all(sql_name(name) in listed for name in all_tables())
    for name in ("kernel_events", "kernel-events"):
        described = run("--describe", name).stdout
        assert described.startswith("kernel_events: ")
        assert "worker" in described
    assert "Did you mean kernels" in run("--describe", "kernel").stderr


def test_columns_with_names_of_keywords_are_quoted() -> None:
    sql = "from duckdb_keywords() where keyword_category = 'reserved'"
    with duckdb.connect(":memory:") as connection:
        listed = connection.execute(sql).fetchall()
    reserved = {name for name, _ in listed}
    names = {column.name for table in all_tables().values() for column in schema_of(table)}
    assert names & reserved == KEYWORDS
    assert not {sql_name(name) for name in all_tables()} & reserved
    assert quoted("group") == '"group"'
    assert quoted("name") == "name"


def test_every_column_can_be_queried() -> None:
    """Also an empty table has its columns, with types."""
    sql = "select table_name, column_name from duckdb_columns() order by table_name, column_index"
    columns: dict[object, list[object]] = {}
    for name, column in values(run_query(sql, replace(LIMITS, row_count=10_000))):
        columns.setdefault(name, []).append(column)
    for name, table in all_tables().items():
        assert columns[name] == columns[sql_name(name)] == [c.name for c in schema_of(table)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_the_examples_run(example: Any) -> None:
    result = run(SAMPLE, example.sql)
    assert (result.exit_code, result.stderr.replace("\n", "")) == (0, "") or (
        "the first 40 of" in result.stderr
    )


def test_the_examples_of_the_help_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").symlink_to(SAMPLE)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^ *stepscope query (log/ .*)$", run("--help").stdout, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        result = run(*shlex.split(command))
        assert result.exit_code == 0, result.stderr
        assert result.stdout or (tmp_path / "idle.csv").stat().st_size > 100


def test_ctrl_c_ends_the_query(tmp_path: Path) -> None:
    sql = "select count(*) from range(100000000000000) where hash(range) = 1"
    command = [sys.executable, "-m", "stepscope", "query", str(tmp_path), sql]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not children.read_text():
            time.sleep(0.05)
        for _ in range(4):  # Python may lose one that comes in a callback, and prints that
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break
        _, printed = process.communicate(timeout=5)
    assert (process.returncode, printed) == (130, "")
