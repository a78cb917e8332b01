"""What is kept of recordings is what they said, is never trusted, and is never in the way."""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import hypothesis.strategies as st
import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from numpy.typing import NDArray

from generated import examples
from loading import SAMPLE_LOGS, SHARED_TRACES, shared_trace_names
from stepscope.advice import AdviceSettings
from stepscope.advice.settings import Changes, Suppression
from stepscope.analyses.communication.rank_summary import rank_summary
from stepscope.base.config import SummarySettings
from stepscope.comparison.samples import sample
from stepscope.comparison.trends import trend
from stepscope.storage import cache_folder, object_files
from stepscope.storage.cache_folder import DamagedError
from stepscope.summaries import parquet_files, run_folder, store, summary_rows
from stepscope.summaries.cache_key import FileLocations, settings_key
from stepscope.summaries.codec import COLUMNS, codec, fields_of
from stepscope.summaries.row_tables import as_table
from stepscope.summaries.store import Store
from stepscope.summaries.summary import Summary
from stepscope.summaries.summary_rows import WholeRow, row_of
from summaries_of import Files, difference, files_at, summary_of

RANKS = SAMPLE_LOGS / "ranks" / "one_slow_rank"
SAMPLES = ("ranks/one_slow_rank", "compiled", "synthetic_healthy", "synthetic_item_sync")


@pytest.fixture(autouse=True)
def nothing_said_yet() -> None:
    cache_folder.warn_once.cache_clear()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def ranks() -> Files:
    return files_at(RANKS)


def store_at(place: Path, rules: AdviceSettings | None = None, **more: Any) -> Store:
    return Store(SummarySettings(location=str(place), **more), rules or AdviceSettings())


def keep(files: Files, place: Path, **more: Any) -> None:
    kept = store_at(place, **more)
    for file, stamp in files:
        kept.add(file, stamp, summary_of(file))
    kept.flush()


def parts_in(place: Path) -> list[Path]:
    return sorted(place.rglob("part-*.parquet"))


def ids(files: Files) -> set[str]:
    return {file.id for file, _ in files}


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "stepscope.summaries"]


# --- what is kept ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *(SAMPLE_LOGS / name for name in SAMPLES),
        *(SHARED_TRACES / name for name in shared_trace_names("hta/critical_path")[:2]),
    ],
    ids=lambda path: path.name,
)
def test_what_is_kept_is_what_was_said(path: Path, place: Path) -> None:
    files = files_at(path)
    keep(files, place)
    whole = store_at(place).find(files, with_samples=True)
    short = store_at(place).find(files)
    for file, _ in files:
        summary = summary_of(file)
        assert difference(summary, whole[file.id]) == ""
        assert difference(replace(summary, sample=None), short[file.id]) == ""


class Place(NamedTuple):
    name: str
    number: int


class Said(msgspec.Struct, frozen=True):
    text: str
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Everything:
    """One field of every kind that a codec knows."""

    flag: bool
    count: int
    share: float
    text: str
    word: Literal["one", "two"]
    perhaps: int | None
    perhaps_text: str | None
    place: Place
    perhaps_place: Place | None
    said: Said
    places: tuple[Place, ...]
    pair: tuple[str, int]
    of_names: Mapping[str, float]
    of_pairs: dict[str, tuple[str, str]]
    places_ns: NDArray[np.int32]
    shares: NDArray[np.float64]
    by_column: Annotated[NDArray[np.int64], COLUMNS]
    frame: pd.DataFrame


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
PLACES = st.builds(Place, TEXTS, INTEGERS)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def arrays(dtype: Any, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, max_size=5).map(lambda each: np.array(each, dtype=dtype))


EVERYTHING = st.builds(
    Everything,
    flag=st.booleans(),
    count=INTEGERS,
    share=st.floats(),
    text=TEXTS,
    word=st.sampled_from(["one", "two"]),
    perhaps=st.none() | INTEGERS,
    perhaps_text=st.none() | TEXTS,
    place=PLACES,
    perhaps_place=st.none() | PLACES,
    said=st.builds(Said, TEXTS, st.lists(FINITE, max_size=3).map(tuple)),
    places=st.lists(PLACES, max_size=3).map(tuple),
    pair=st.tuples(TEXTS, INTEGERS),
    of_names=st.dictionaries(TEXTS, st.floats(), max_size=3),
    of_pairs=st.dictionaries(TEXTS, st.tuples(TEXTS, TEXTS), max_size=3),
    places_ns=arrays(np.int32, st.integers(-(2**31), 2**31 - 1)),
    shares=arrays(np.float64, st.floats()),
    by_column=st.tuples(st.integers(0, 4), st.integers(1, 3)).map(
        lambda shape: np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    ),
    frame=st.lists(TEXTS, max_size=3).map(
        lambda texts: pd.DataFrame({"a": texts, "b": texts[::-1]}, dtype=object)
    ),
)


@examples(30)
@given(st.lists(EVERYTHING, max_size=4), st.data())
def test_a_column_gives_back_every_kind_of_value(values: list[Everything], data: Any) -> None:
    of = codec(Everything)
    column = of.encode(values)
    assert column.type == of.type
    back = of.decode(column)
    first = data.draw(st.integers(0, len(values)))
    assert difference(tuple(values), tuple(back)) == ""
    assert difference(tuple(values[first:]), tuple(of.decode(column[first:]))) == ""


def test_a_text_that_is_none_of_those_it_may_be_is_damage() -> None:
    of = codec(Literal["one", "two"])
    assert of.decode(of.encode(["two", "one", "two"])) == ["two", "one", "two"]
    with pytest.raises(DamagedError, match="'three' is not one of"):
        of.decode(of.encode(["one", "three"]))


def test_what_has_no_column_is_refused() -> None:
    with pytest.raises(TypeError, match="<class 'complex'> cannot be stored"):
        codec(complex)


def test_what_ranks_have_in_common_is_one_object(ranks: Files, place: Path) -> None:
    keep(ranks, place)
    one, other = store_at(place).find(ranks).values()
    passed = [
        {each.rule: each for each in known.advice.outcomes if each.status == "not-applicable"}
        for known in (one, other)
    ]
    rule = next(iter(passed[0].keys() & passed[1].keys()))
    assert passed[0][rule].why is passed[1][rule].why
    assert one.advice.part is not None
    assert other.advice.part is not None
    names = [known.advice.part.totals.parts_ns for known in (one, other) if known.advice.part]
    assert all(a is b for a, b in zip(*names, strict=True))


def test_a_summary_answers_for_its_recording(ranks: Files) -> None:
    summary = summary_of(ranks[0][0])
    assert summary.part(rank_summary) == (summary.advice.part,)
    assert summary.part(trend) == (summary.trend,)
    assert summary.part(sample) == (summary.sample,)
    lacking = replace(summary, sample=None, trend=None, advice=replace(summary.advice, part=None))
    assert [lacking.part(each) for each in (rank_summary, trend, sample, len)] == [None] * 4


def test_it_takes_a_hundredth_of_the_json(place: Path) -> None:
    """Of two small ranks already; of more, what they have in common is kept once."""
    files = files_at(RANKS)
    keep(files, place)
    [part] = parts_in(place)
    json_bytes = sum(summary_of(file).advice.worker.inflated_bytes for file, _ in files)
    assert part.stat().st_size < json_bytes / 50


# --- when it is used ---------------------------------------------------------------------------


def test_nothing_is_kept_where_there_is_no_place(ranks: Files) -> None:
    nowhere = Store(SummarySettings())
    nowhere.add(*ranks[0], summary_of(ranks[0][0]))
    nowhere.flush()
    assert nowhere.find(ranks) == {}


def test_a_file_that_changed_is_not_known(ranks: Files, place: Path) -> None:
    keep(ranks, place)
    (file, stamp), other = ranks
    for changed in (
        replace(stamp, size_bytes=stamp.size_bytes + 1),
        replace(stamp, modified_ns=stamp.modified_ns + 1),
        replace(stamp, tag="another"),
    ):
        assert store_at(place).find([(file, changed), other]).keys() == {other[0].id}


def test_a_file_whose_state_nothing_tells_is_not_kept(ranks: Files, place: Path) -> None:
    file, stamp = ranks[0]
    kept = store_at(place)
    kept.add(file, None, summary_of(file))
    kept.add(file, replace(stamp, modified_ns=0), summary_of(file))
    kept.flush()
    assert parts_in(place) == []


def test_a_rule_that_failed_is_asked_again(ranks: Files, place: Path) -> None:
    file, stamp = ranks[0]
    summary = summary_of(file)
    failed = msgspec.structs.replace(summary.advice.outcomes[0], status="failed")
    advice = replace(summary.advice, outcomes=(failed, *summary.advice.outcomes[1:]))
    kept = store_at(place)
    assert kept.add(file, stamp, summary)
    assert not kept.add(file, replace(stamp, size_bytes=1), replace(summary, advice=advice))
    kept.flush()
    assert store_at(place).find([(file, stamp)])
    assert not store_at(place).find([(file, replace(stamp, size_bytes=1))])


def test_a_recording_that_is_called_otherwise_now_is_not_known(ranks: Files, place: Path) -> None:
    keep(ranks, place)
    (file, stamp), _ = ranks
    assert store_at(place).find([(replace(file, span="2"), stamp)]) == {}
    assert store_at(place).find([(replace(file, worker="another"), stamp)]) == {}


def test_it_does_not_matter_how_the_user_came_to_a_file(
    ranks: Files, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(ranks, place)
    (tmp_path / "linked").symlink_to(RANKS)
    monkeypatch.chdir(RANKS.parent)
    for path in ("one_slow_rank", tmp_path / "linked"):
        files = files_at(path)
        known = store_at(place).find(files, with_samples=True)
        for file, _ in files:
            assert known[file.id].advice.worker.trace == file.id
            assert {each.trace for each in known[file.id].advice.outcomes} == {file.id}
            assert difference(summary_of(file), known[file.id]) == ""


SUPPRESSED = Suppression(rule="item-sync", reason="known", expires="2000-01-31")


@pytest.mark.parametrize(
    ("changes", "is_other"),
    [
        (Changes(), False),
        (Changes(gpus=8, price=2.5), False),
        (Changes(ignore=("item-sync",)), True),
        (Changes(options={"item-sync": {"least_idle_share": 0.5}}), True),
        (Changes(suppressions=(SUPPRESSED,)), True),
    ],
    ids=["none", "of the job", "ignored", "option", "put aside"],
)
def test_other_settings_of_the_rules_are_another_summary(
    changes: Changes, ranks: Files, place: Path, *, is_other: bool
) -> None:
    keep(ranks, place)
    known = store_at(place, AdviceSettings(changes=changes)).find(ranks)
    assert known.keys() == (set() if is_other else ids(ranks))


def test_a_suppression_that_expires_makes_another_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = AdviceSettings(changes=Changes(suppressions=(SUPPRESSED,)))
    before, after = "2000-01-31", "2000-02-01"
    keys = []
    for day in (before, after, after):
        monkeypatch.setattr("stepscope.summaries.cache_key.today", lambda day=day: day)
        keys.append(settings_key(settings))
    assert keys[0] != keys[1] == keys[2]


def test_columns_that_change_are_kept_elsewhere() -> None:
    @dataclass(frozen=True)
    class Before:
        step_ns: int

    @dataclass(frozen=True)
    class After:
        step_ns: float

    names = {
        summary_rows.folder_name(fields_of(of), version)
        for of in (Before, After)
        for version in (1, 2)
    }
    assert len(names) == 4
    assert (
        summary_rows.folder_name(summary_rows.SCHEMA, summary_rows.VERSION) == summary_rows.FOLDER
    )


def test_what_another_version_kept_is_left_alone(ranks: Files, place: Path) -> None:
    keep(ranks, place)
    [part] = parts_in(place)
    other = place / "v0-00000000"
    part.parent.parent.rename(other)
    assert store_at(place).find(ranks) == {}
    keep(ranks, place)
    assert len(parts_in(other)) == 1


# --- damage ------------------------------------------------------------------------------------


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content + b"\0",
        lambda content: flipped(content, 10),
        lambda content: flipped(content, len(content) // 2),
        lambda content: flipped(content, len(content) - 20),
        lambda _: b"another file" * 100,
    ],
    ids=["empty", "cut off", "longer", "head", "middle", "foot", "no table"],
)
def test_a_damaged_file_costs_itself_and_a_line(
    damage: Callable[[bytes], bytes],
    ranks: Files,
    place: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    keep(ranks[:1], place)
    [part] = parts_in(place)
    keep(ranks[1:], place)
    part.write_bytes(damage(part.read_bytes()))
    assert store_at(place).find(ranks).keys() == ids(ranks[1:])
    [line] = said(caplog)
    assert line.startswith(f"{part} was damaged and is removed: DamagedError: its content does not")
    assert not part.exists()


def written_as_ours(table: pa.Table | bytes, files: Files, place: Path) -> Path:
    """Write what somebody made who knows how our files are named."""
    keep(files, place)
    [part] = parts_in(place)
    part.unlink()
    content = table if isinstance(table, bytes) else parquet_files.parquet_bytes(table)
    settings = parquet_files.settings_of(part.name)
    assert settings is not None
    own = part.with_name(parquet_files.name(settings, content))
    own.write_bytes(content)
    return own


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (b"PAR1 and no more of it", "ArrowInvalid"),
        (pa.table({"file": ["a"]}), "its columns differ"),
    ],
    ids=["no table", "other columns"],
)
def test_a_file_that_somebody_made_costs_itself_and_a_line(
    made: Any, reason: str, ranks: Files, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    part = written_as_ours(made, ranks, place)
    assert store_at(place).find(ranks) == {}
    [line] = said(caplog)
    assert reason in line
    assert not part.exists()


@pytest.mark.parametrize("name", ["MOST_BYTES", "MOST_UNPACKED_BYTES", "MOST_ROWS", "MOST_VALUES"])
def test_a_file_that_would_take_too_much_is_not_unpacked(
    name: str,
    ranks: Files,
    place: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep(ranks, place)
    monkeypatch.setattr(parquet_files, name, 1)
    assert store_at(place).find(ranks) == {}
    assert "was damaged and is removed" in said(caplog)[0]


def with_column(row: WholeRow, name: str, value: Any) -> pa.Table:
    """A row as a table in which one column holds something else."""
    table = as_table([row])
    place = table.schema.get_field_index(name)
    return table.set_column(
        place, table.schema.field(name), pa.array([value], table.schema.field(name).type)
    )


def changed_part(row: WholeRow, **collectives: Any) -> pa.Table:
    assert row.part is not None
    part = replace(row.part, collectives=replace(row.part.collectives, **collectives))
    return as_table([replace(row, part=part)])


def changed_costs(row: WholeRow, **costs: Any) -> pa.Table:
    assert row.sample is not None
    operators = replace(row.sample.operators, **costs)
    return as_table([replace(row, sample=replace(row.sample, operators=operators))])


DAMAGED_ROWS: dict[str, Callable[[WholeRow], pa.Table]] = {
    "no JSON": lambda row: with_column(row, "report", "{"),
    "other JSON": lambda row: with_column(row, "report", '{"trace": 1}'),
    "outcomes": lambda row: with_column(row, "outcomes", ["[]"]),
    "another recording's report": lambda row: as_table(
        [replace(row, report=msgspec.structs.replace(row.report, name="another"))]
    ),
    "lengths": lambda row: changed_part(row, start_ns=np.zeros(1, dtype=np.int64)),
    "places": lambda row: changed_part(
        row, key=np.full(len(row.part.collectives) if row.part else 0, 99, dtype=np.int32)
    ),
    "figures": lambda row: as_table(
        [replace(row, trend=replace(row.trend, figures={"step_ns": 1.0}) if row.trend else None)]
    ),
    "columns of costs": lambda row: changed_costs(
        row, keys=pd.DataFrame({"name": row.sample.operators.keys["name"] if row.sample else []})
    ),
    "steps of costs": lambda row: changed_costs(
        row, step=np.full(len(row.sample.operators.step) if row.sample else 0, -1, dtype=np.int64)
    ),
}


@pytest.mark.parametrize("damage", DAMAGED_ROWS.values(), ids=DAMAGED_ROWS.keys())
def test_a_damaged_row_costs_itself_and_a_line(
    damage: Callable[[WholeRow], pa.Table],
    ranks: Files,
    place: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    keep(ranks, place)
    settings = parquet_files.settings_of(parts_in(place)[0].name)
    made = [row_of(FileLocations(), *each, summary_of(each[0]), settings or "") for each in ranks]
    parts_in(place)[0].unlink()
    written_as_ours(pa.concat_tables([damage(made[0]), as_table(made[1:])]), ranks, place)
    assert store_at(place).find(ranks, with_samples=True).keys() == ids(ranks[1:])
    [line] = said(caplog)
    assert "cannot be used" in line


def test_a_row_that_cannot_be_kept_costs_itself_and_a_line(
    ranks: Files, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A text that is no Unicode, which a file's name can hold."""
    (file, stamp), other = ranks
    summary = summary_of(file)
    worker = msgspec.structs.replace(summary.advice.worker, file="\udcff.json")
    odd = replace(summary, advice=replace(summary.advice, worker=worker))
    kept = store_at(place)
    kept.add(file, stamp, odd)
    kept.add(*other, summary_of(other[0]))
    kept.flush()
    assert store_at(place).find(ranks).keys() == {other[0].id}
    [line] = said(caplog)
    assert line.startswith("a summary cannot be stored: UnicodeEncodeError")


def test_a_place_that_is_closed_costs_a_line_each_way(
    ranks: Files, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    closed = tmp_path / "file" / "kept"
    keep(ranks, closed)
    keep(ranks, closed)
    assert store_at(closed).find(ranks) == {}
    [line] = said(caplog)
    assert "summaries there cannot be written (NotADirectoryError" in line


def test_no_secret_of_an_address_is_kept(ranks: Files) -> None:
    file, stamp = ranks[0]
    secret = "https://user:geheim@host/run/w.1.pt.trace.json?signature=geheim"  # noqa: S105
    named = replace(file, path=secret)
    row = row_of(FileLocations(), named, stamp, summary_of(file), "0" * 16)
    assert "geheim" not in as_table([row]).to_pandas().to_json()
    assert row.path == "https://***@host/run/w.1.pt.trace.json?***"


# --- several at once, and in the long run ------------------------------------------------------


def test_several_programs_write_and_read_one_place_at_once(ranks: Files, place: Path) -> None:
    wrong: list[str] = []

    def program(number: int) -> None:
        file, stamp = ranks[number % 2]
        for _ in range(5):
            own = store_at(place)
            own.add(file, stamp, summary_of(file))
            own.flush()
            known = store_at(place).find([(file, stamp)])
            wrong.extend(
                difference(replace(summary_of(file), sample=None), each) for each in known.values()
            )
            wrong.extend([] if known else ["it is not there"])

    for file, _ in ranks:
        summary_of(file)
    threads = [threading.Thread(target=program, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each for each in wrong if each] == []
    assert store_at(place).find(ranks).keys() == ids(ranks)
    assert len(parts_in(place)) <= run_folder.MOST_PARTS + len(threads)


def test_many_files_become_one_of_the_newest_rows(ranks: Files, place: Path) -> None:
    file, stamp = ranks[0]
    summary = summary_of(file)
    kept = store_at(place)
    for events in range(run_folder.MOST_PARTS + 1):
        kept.add(file, stamp, replace(summary, events=events))
        kept.flush()
    [part] = parts_in(place)
    known = store_at(place).find(ranks, with_samples=True)
    assert difference(known[file.id], replace(summary, events=run_folder.MOST_PARTS)) == ""
    kept.add(*ranks[1], summary_of(ranks[1][0]))
    kept.flush()
    assert part.exists()
    assert store_at(place).find(ranks).keys() == ids(ranks)


def test_no_file_becomes_larger_than_one_that_is_read(
    ranks: Files, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, stamp = ranks[0]
    summary = summary_of(file)
    kept = store_at(place)
    for events in range(run_folder.MOST_PARTS + 1):
        kept.add(file, stamp, replace(summary, events=events))
        kept.flush()
        size = parts_in(place)[0].stat().st_size
        monkeypatch.setattr(run_folder, "MOST_MERGED_BYTES", int(5.5 * size))
    assert len(parts_in(place)) == run_folder.MOST_PARTS + 1 - 5 + 1
    assert store_at(place).find(ranks)[file.id].events == run_folder.MOST_PARTS


def test_what_was_put_together_is_not_written_again_for_each_small_file(
    ranks: Files, place: Path
) -> None:
    keep(ranks, place)
    [part] = parts_in(place)
    large = part.with_name(f"{part.name.rpartition('-')[0]}-{'0' * 16}.parquet")
    large.write_bytes(bytes(100 * part.stat().st_size))
    for _ in range(run_folder.MOST_PARTS - 1):
        keep(ranks[:1], place)
    assert large.exists(), "it was not even read"
    assert len(parts_in(place)) == 2


def test_a_file_that_goes_while_it_is_read_is_found_where_it_went(
    ranks: Files, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(ranks, place)
    [part] = parts_in(place)
    content = part.read_bytes()
    read = object_files.read

    def read_late(folder: str, name: str) -> bytes | None:
        if part.exists():  # another program puts it together with others just now
            part.unlink()
            other = parquet_files.parquet_bytes(as_table(list(made)))
            part.with_name(parquet_files.name(settings, other)).write_bytes(other)
        return read(folder, name)

    settings = parquet_files.settings_of(part.name) or ""
    made = [row_of(FileLocations(), *each, summary_of(each[0]), settings) for each in ranks]
    monkeypatch.setattr(object_files, "read", read_late)
    assert store_at(place).find(ranks).keys() == ids(ranks)
    assert content != parts_in(place)[0].read_bytes()


def test_settings_that_nobody_uses_any_more_are_forgotten(ranks: Files, place: Path) -> None:
    used = [AdviceSettings(changes=Changes(ignore=("item-sync",) * n)) for n in range(6)]
    known: set[Path] = set()
    for at, rules in enumerate(used):
        keep(ranks[:1], place, rules=rules)
        for part in set(parts_in(place)) - known:
            os.utime(part, (at, at))
            known.add(part)
    left = [bool(store_at(place, rules).find(ranks)) for rules in used]
    assert left == [False] * 2 + [True] * 4


def test_a_local_place_is_bounded_and_nothing_of_others_is_touched(
    ranks: Files, place: Path
) -> None:
    keep(ranks, place)
    [first] = parts_in(place)
    os.utime(first, (1, 1))
    others = [place / "part-a.parquet", first.parent / "mine.parquet", place / "run" / first.name]
    for other in others:
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(b"of somebody else")
    more = files_at(SAMPLE_LOGS / "synthetic_healthy")
    keep(more, place, bound_bytes=first.stat().st_size)
    assert not first.exists()
    assert all(other.exists() for other in others)
    assert store_at(place).find([*ranks, *more]).keys() == ids(more)


def test_what_waits_is_written_when_it_is_much_or_late(
    ranks: Files, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, stamp = ranks[0]
    monkeypatch.setattr(store, "MOST_WAITING", 2)
    kept = store_at(place)
    kept.add(file, stamp, summary_of(file))
    assert parts_in(place) == []
    kept.add(*ranks[1], summary_of(ranks[1][0]))
    assert len(parts_in(place)) == 1
    monkeypatch.setattr(store, "MOST_SECONDS", -1.0)
    kept.add(file, stamp, summary_of(file))
    assert len(parts_in(place)) == 2


def test_a_part_that_fails_does_not_cost_the_advice(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("stepscope.summaries.summary.sample", broken)
    with caplog.at_level(logging.WARNING):
        found: Summary = summary_of.__wrapped__(files_at(RANKS)[0][0])
    assert (found.sample, found.trend is None) == (None, False)
    assert "a part of its summary is omitted: ZeroDivisionError" in caplog.text
