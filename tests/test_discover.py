"""Finding recordings by their names, without opening one."""

from pathlib import Path

import pytest

from stepscope import discover
from stepscope.errors import UnreadableError


def _touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"never opened")


def _found(root: Path) -> list[tuple[str, str, str, str]]:
    return [
        (file.run, file.worker, file.span, Path(file.path).name)
        for file in discover.in_folder(str(root))
    ]


def test_runs_are_folders_workers_names_and_spans_times(tmp_path: Path) -> None:
    _touch(
        tmp_path,
        "a/host_1.1700000000000000000.pt.trace.json",
        "a/host_1.1699999999999999999.pt.trace.json.gz",
        "a/host_2.5.pt.trace.json",
        "a/deep/er/w.7.pt.trace.json",
        "b/plain.pt.trace.json",
    )
    assert _found(tmp_path) == [
        ("a", "host_1", "1", "host_1.1699999999999999999.pt.trace.json.gz"),
        ("a", "host_1", "2", "host_1.1700000000000000000.pt.trace.json"),
        ("a", "host_2", "1", "host_2.5.pt.trace.json"),
        ("a/deep/er", "w", "1", "w.7.pt.trace.json"),
        ("b", "plain", "1", "plain.pt.trace.json"),
    ]


def test_spans_are_ordered_by_number_not_by_text(tmp_path: Path) -> None:
    _touch(tmp_path, *(f"w.{time}.pt.trace.json" for time in (999, 1000, 10)))
    assert [name for *_, name in _found(tmp_path)] == [
        "w.10.pt.trace.json",
        "w.999.pt.trace.json",
        "w.1000.pt.trace.json",
    ]


def test_the_log_folder_itself_can_be_a_run(tmp_path: Path) -> None:
    _touch(tmp_path / "job", "w.1.pt.trace.json")
    assert _found(tmp_path / "job") == [("job", "w", "1", "w.1.pt.trace.json")]


def test_names_with_dots_and_digits_stay_the_workers(tmp_path: Path) -> None:
    _touch(tmp_path / "r", "node-3.example.org_77.123.pt.trace.json.gz", ".9.pt.trace.json")
    assert {(worker, span) for _, worker, span, _ in _found(tmp_path)} == {
        ("node-3.example.org_77", "1"),
        ("worker", "1"),
    }


def test_other_files_and_hidden_folders_are_left_alone(tmp_path: Path) -> None:
    _touch(
        tmp_path,
        "r/events.out.tfevents.1",
        "r/trace.json",
        "r/w.1.pt.trace.json.tmp",
        "r/w.1.pt.trace.json.gz.part",
        ".cache/w.1.pt.trace.json",
    )
    assert _found(tmp_path) == []


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    _touch(tmp_path, "real/w.1.pt.trace.json")
    (tmp_path / "logs" / "run").mkdir(parents=True)
    (tmp_path / "logs" / "link").symlink_to(tmp_path / "real")
    (tmp_path / "logs" / "run" / "up").symlink_to(tmp_path / "logs")
    (tmp_path / "logs" / "run" / "x.1.pt.trace.json").symlink_to(
        tmp_path / "real" / "w.1.pt.trace.json"
    )
    assert [run for run, *_ in _found(tmp_path / "logs")] == ["link", "run"]


def test_a_prefix_names_the_log_folder(tmp_path: Path) -> None:
    _touch(tmp_path, "a/w.1.pt.trace.json")
    assert [file.run for file in discover.in_folder(str(tmp_path), "exp")] == ["exp/a"]


def test_ids_are_opaque_stable_and_distinct(tmp_path: Path) -> None:
    _touch(tmp_path, "a/w.1.pt.trace.json", "b/w.1.pt.trace.json", "a/w.2.pt.trace.json")
    first = [file.id for file in discover.in_folder(str(tmp_path))]
    assert first == [file.id for file in discover.in_folder(str(tmp_path))]
    assert len(set(first)) == 3
    assert all(identity.isalnum() for identity in first)
    assert len({discover.run_identifier(run) for run in ("a", "b")}) == 2


def test_a_path_may_be_one_file_of_any_name(tmp_path: Path) -> None:
    _touch(tmp_path, "job/my trace.json", "job/w_1.5.pt.trace.json.gz")
    (odd,) = discover.at(str(tmp_path / "job" / "my trace.json"))
    assert (odd.run, odd.worker, odd.span) == ("job", "my trace", "1")
    (usual,) = discover.at(str(tmp_path / "job" / "w_1.5.pt.trace.json.gz"))
    assert (usual.run, usual.worker) == ("job", "w_1")


def test_a_path_may_be_a_run_or_a_log_folder(tmp_path: Path) -> None:
    _touch(tmp_path, "log/a/w.1.pt.trace.json")
    assert [file.run for file in discover.at(str(tmp_path / "log"))] == ["a"]
    assert [file.run for file in discover.at(str(tmp_path / "log" / "a") + "/")] == ["a"]


def test_nothing_there_says_what_was_looked_for_and_how_to_record(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no such file or folder"):
        discover.at(str(tmp_path / "missing"))
    with pytest.raises(UnreadableError, match=r"looked for .*\.pt\.trace\.json") as caught:
        discover.at(str(tmp_path))
    assert "tensorboard_trace_handler" in caught.value.remedy
