"""Settings that the trace handler wrote: read whole, by every reader, and never a danger."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loading
import tracebuild
from stepscope import ingest
from stepscope.analyses.settings.recorded_settings import (
    AutocastSettings,
    DeviceSettings,
    LoaderSettings,
    OptimizerSettings,
    PrecisionSettings,
    RecordedSettings,
    common_value,
    recorded_settings,
)
from stepscope.analyses.settings.user_metadata import hints
from stepscope.base.config import CacheSettings
from stepscope.ingest import reader
from stepscope.model.read import read_trace
from stepscope.model.trace import Trace
from stepscope.readers.column_cache import columns_of
from stepscope.readers.trace_transfer import pack, unpack
from stepscope.render.trace_excerpt import Request, write
from stepscope.storage import discover, stamp

ROWS: list[Any] = [
    ["user_annotation", "ProfilerStep#1", 0, 100],
    ["cpu_op", "aten::mm", 10, 50],
    ["user_annotation", "ProfilerStep#2", 100, 100],
]
MARK = {
    "schema": 1,
    "recorder": "0.2.0",
    "settings": {
        "dataloaders": [{"batch_size": 32, "worker_count": 0, "pin_memory": False}],
        "precision": {"default_dtype": "torch.float32", "autocast": {"enabled": True}},
    },
}


def settings_of(mark: object) -> RecordedSettings:
    return recorded_settings(loading.trace_of(ROWS, stepscope_recorder=mark))


def file_of(folder: Path, mark: object = MARK) -> Path:
    path = folder / "worker.1.pt.trace.json.gz"
    document = tracebuild.document(rows=ROWS, metadata={"stepscope_recorder": mark})
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


def read(path: Path) -> Trace:
    [file] = discover.at(str(path))
    return read_trace(file)


# What is read


def test_without_a_trace_handler_nothing_is_known() -> None:
    marks: list[object] = [None, {"synthetic": True}, {"batch_size": 8}, [], "text", "[" * 100_000]
    for mark in marks:
        assert settings_of(mark) == RecordedSettings()


def test_what_was_written_is_read_and_what_was_not_is_not_known() -> None:
    assert settings_of(MARK) == RecordedSettings(
        schema=1,
        recorder="0.2.0",
        dataloaders=(LoaderSettings(batch_size=32, worker_count=0, pin_memory=False),),
        precision=PrecisionSettings(
            default_dtype="float32", autocast=AutocastSettings(enabled=True)
        ),
    )


def test_an_older_torch_writes_the_object_as_a_text() -> None:
    assert settings_of(json.dumps(MARK)) == settings_of(MARK)


def test_hints_of_the_program_stand_beside_the_settings() -> None:
    trace = loading.trace_of(ROWS, stepscope_recorder=MARK, stepscope={"num_workers": 3})
    assert hints(trace).num_workers == 3
    assert recorded_settings(trace).dataloaders[0].batch_size == 32


def test_what_is_of_another_kind_is_dropped_and_named() -> None:
    found = settings_of(
        {
            "schema": 1,
            "settings": {
                "dataloaders": [
                    {"batch_size": "many", "worker_count": -1, "pin_memory": 1},
                    7,
                    {"batch_size": 0, "worker_count": 4},
                ],
                "optimizers": "AdamW",
                "devices": [{"index": True, "name": "A", "memory_bytes": 2**80}],
                "precision": {"autocast": {"enabled": "yes", "dtype": "torch.bfloat16"}},
                "host": [],
            },
        }
    )
    assert found == RecordedSettings(
        schema=1,
        dataloaders=(LoaderSettings(), LoaderSettings(), LoaderSettings(worker_count=4)),
        devices=(DeviceSettings(name="A"),),
        precision=PrecisionSettings(autocast=AutocastSettings(dtype="bfloat16")),
        lost=(
            "host",
            "devices[0].index",
            "devices[0].memory_bytes",
            "dataloaders[0].batch_size",
            "dataloaders[0].worker_count",
            "dataloaders[0].pin_memory",
            "dataloaders[1]",
            "dataloaders[2].batch_size",
            "optimizers",
            "precision.autocast.enabled",
        ),
    )


def test_null_is_not_known_and_nothing_is_lost() -> None:
    settings = {"optimizers": [{"name": "SGD", "foreach": None}], "host": None}
    assert settings_of({"schema": 1, "settings": settings}) == RecordedSettings(
        schema=1, optimizers=(OptimizerSettings(name="SGD"),)
    )


def test_a_newer_schema_is_read_as_far_as_it_is_understood() -> None:
    settings = {"model": {"name": "ResNet", "mood": 1}, "weather": {"rain": True}}
    found = settings_of({"schema": 7, "settings": settings})
    assert (found.is_newer, found.model.name) == (True, "ResNet")
    assert found.lost == ("model.mood", "weather")
    assert settings_of({"schema": 1, "settings": settings}).lost == ()


def test_long_texts_are_cut_and_stand_in_one_line() -> None:
    name = settings_of({"settings": {"model": {"name": "a\x1b[31m\n" + "b" * 10_000}}}).model.name
    assert name is not None
    assert (len(name), name.isprintable()) == (200, True)


def test_lists_without_end_are_cut() -> None:
    found = settings_of({"settings": {"optimizers": [{"name": "SGD"}] * 1000}})
    assert (len(found.optimizers), found.lost) == (64, ("optimizers[64]",))


def test_variables_that_may_hold_a_secret_are_never_shown() -> None:
    said = {"OMP_NUM_THREADS": "1", "HF_TOKEN": "hf_x", "path": "x", "WANDB_API_KEY": "y"}
    found = settings_of({"settings": {"environment": said}})
    assert found.environment == {"OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("torch.float8_e4m3fn", "float8_e4m3fn"),
        ("bfloat16", "bfloat16"),
        ("float16): import os; os.system('x')  #", None),
        ("torch.", None),
        (16, None),
    ],
)
def test_a_type_is_a_name_and_no_code(said: object, known: str | None) -> None:
    precision = {"autocast": {"dtype": said}, "model_dtype_counts": {str(said): 2}}
    found = settings_of({"settings": {"precision": precision}}).precision
    assert found.autocast.dtype == known
    assert found.model_dtype_counts == ({known: 2} if known else {})


def test_versions_are_texts_numbers_or_lists() -> None:
    torch = {"version": "2.13.0+cpu", "cuda": "12.8", "cudnn": 91002, "driver": [580, 65]}
    found = settings_of({"settings": {"torch": torch, "devices": [{"capability": [9, 0]}]}})
    assert (found.torch.cuda, found.torch.cudnn, found.torch.driver) == ("12.8", "91002", "580.65")
    assert found.devices[0].capability == "9.0"


@pytest.mark.parametrize(
    ("values", "all_say"),
    [([4, 4], 4), ([4, 2], None), ([4, None], None), ([], None), ([False], False)],
)
def test_what_all_say_is_agreed(values: list[int | None], all_say: int | None) -> None:
    assert common_value(values) == all_say


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
SUBJECTS = st.sampled_from(list(RecordedSettings.__dataclass_fields__))
NAMES = st.sampled_from(
    ["batch_size", "autocast", "enabled", "schedule", "name", "model_dtype_counts", "version"]
)
INNER = JSON | st.dictionaries(NAMES, JSON | st.dictionaries(NAMES, JSON))


@given(
    mark=JSON
    | st.fixed_dictionaries(
        {"schema": JSON, "settings": st.dictionaries(SUBJECTS, INNER | st.lists(INNER))}
    )
)
def test_whatever_stands_there_is_read_and_nothing_is_raised(mark: object) -> None:
    found = settings_of(mark)
    assert isinstance(found, RecordedSettings)
    assert len(found.lost) <= 20


def test_what_is_nested_without_end_costs_only_itself() -> None:
    deep = "[" * 50_000 + "]" * 50_000
    text = json.dumps(tracebuild.document(rows=ROWS))
    text = f'{text[:-1]}, "stepscope_recorder": {{"schema": 1, "settings": {{"model": {deep}}}}}}}'
    trace = loading.trace_of(document=json.loads(json.dumps(tracebuild.document(rows=ROWS))))
    columns = loading.columns_of(text)
    assert len(columns) == len(trace.columns)
    assert "stepscope_recorder" not in columns.metadata


# It comes through


@pytest.mark.parametrize("how", ["0", "1", reader.ONE_BY_ONE])
def test_every_reader_keeps_it(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(reader.FORCED, how)
    assert recorded_settings(read(file_of(tmp_path))) == settings_of(MARK)


def test_the_cache_keeps_it(tmp_path: Path) -> None:
    path = str(file_of(tmp_path))
    settings = CacheSettings(folder=str(tmp_path / "kept"), worth_bytes=0)
    first = columns_of(path, stamp(path), settings, lambda: ingest.read(path))

    def never() -> ingest.EventColumns:
        pytest.fail("it was read anew")

    again = columns_of(path, stamp(path), settings, never)
    assert again.metadata["stepscope_recorder"] == first.metadata["stepscope_recorder"] == MARK


def test_it_crosses_from_the_child_process(tmp_path: Path) -> None:
    trace = read(file_of(tmp_path))
    assert recorded_settings(unpack(pack(trace))) == settings_of(MARK)


def test_a_cut_file_keeps_it(tmp_path: Path) -> None:
    target = tmp_path / "cut" / "worker.1.pt.trace.json"
    target.parent.mkdir()
    trace = read(file_of(tmp_path))
    write(trace, Request(path=str(target), time_ns=(0, 100_000), is_repaired=True))
    assert recorded_settings(read(target)) == settings_of(MARK)
