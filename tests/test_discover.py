"""Finding recordings by their names, without opening one."""

import errno
import os
from pathlib import Path

import pytest

from stepscope import storage
from stepscope.base.errors import UnreadableError
from stepscope.model.read import read_trace
from stepscope.storage import discover


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


def test_files_named_singly_are_numbered_by_the_time_in_their_names(tmp_path: Path) -> None:
    names = ["w.20.pt.trace.json", "v.1.pt.trace.json", "w.3.pt.trace.json", "w.json"]
    _touch(tmp_path / "run", *names)
    _touch(tmp_path / "other", "w.7.pt.trace.json")
    given = [tmp_path / "run" / name for name in names] + [tmp_path / "other" / "w.7.pt.trace.json"]
    files = discover.as_runs(file for path in given for file in discover.at(str(path)))
    assert [(file.run, file.worker, file.span, Path(file.path).name) for file in files] == [
        ("run", "w", "1", "w.json"),
        ("run", "w", "2", "w.3.pt.trace.json"),
        ("run", "w", "3", "w.20.pt.trace.json"),
        ("run", "v", "1", "v.1.pt.trace.json"),
        ("other", "w", "1", "w.7.pt.trace.json"),
    ]
    assert len({file.id for file in files}) == len(given)


def test_runs_of_one_name_are_told_apart_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = "w.1.pt.trace.json"
    _touch(tmp_path / "log", trace, f"log/{trace}", f"log/log/{trace}", f"m/{trace}")
    files = discover.in_folder("log")
    assert [file.run for file in files] == ["log", "log/log", "log/log/log", "m"]
    assert len({file.run_id for file in files}) == 4


def test_a_pipe_is_found_but_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "w.1.pt.trace.json"
    os.mkfifo(path)
    with pytest.raises(OSError, match="it is a pipe, a socket or a device, not a file"):
        storage.stamp(str(path))
    with pytest.raises(UnreadableError, match="This cannot be read: it is a pipe"):
        read_trace(discover.at(str(path))[0])


def test_a_path_that_cannot_be_looked_at_is_refused(tmp_path: Path) -> None:
    for name in ("n" * 300, "zero\0byte"):
        with pytest.raises(UnreadableError, match="This cannot be opened: ") as caught:
            discover.at(str(tmp_path / name))
        assert caught.value.remedy
    assert not storage.is_folder(str(tmp_path / ("n" * 300)))


def test_a_folder_that_may_not_be_entered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: object) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)  # the tests may run as root, who may enter all
    with pytest.raises(UnreadableError, match="This cannot be opened: Permission denied"):
        discover.at(str(tmp_path))


def test_a_folder_that_goes_while_it_is_walked_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _touch(tmp_path, "a/w.1.pt.trace.json", "b/w.1.pt.trace.json", "c/w.1.pt.trace.json")
    real = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        if path.name == "b":
            raise FileNotFoundError(errno.ENOENT, "gone", str(path))
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert [run for run, *_ in _found(tmp_path)] == ["a", "c"]


def test_a_path_may_be_a_run_or_a_log_folder(tmp_path: Path) -> None:
    _touch(tmp_path, "log/a/w.1.pt.trace.json")
    assert [file.run for file in discover.at(str(tmp_path / "log"))] == ["a"]
    assert [file.run for file in discover.at(str(tmp_path / "log" / "a") + "/")] == ["a"]


def test_nothing_there_says_what_was_looked_for_and_how_to_record(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="There is no such file or folder"):
        discover.at(str(tmp_path / "missing"))
    with pytest.raises(UnreadableError, match=r"Traces are .*\.pt\.trace\.json") as caught:
        discover.at(str(tmp_path))
    assert "tensorboard_trace_handler" in caught.value.remedy
    assert "any other name" not in caught.value.remedy


@pytest.mark.parametrize("name", ["trace.json", "deep/rank0.json.gz"])
def test_a_folder_of_other_names_says_that_they_can_be_given(tmp_path: Path, name: str) -> None:
    _touch(tmp_path, name)
    with pytest.raises(
        UnreadableError, match="To read a trace with another name, pass its path"
    ) as caught:
        discover.at(str(tmp_path))
    assert str(tmp_path / name) in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "recorded_ns"),
    [
        ("w.1700000000123456789.pt.trace.json", 1700000000123456789),
        ("w.1623143089861.pt.trace.json.gz", 1623143089861000000),  # torch before 2.1
        ("w.pt.trace.json", 0),
    ],
)
def test_the_name_tells_when_it_was_recorded(tmp_path: Path, name: str, recorded_ns: int) -> None:
    _touch(tmp_path, name)
    [file] = discover.in_folder(str(tmp_path))
    assert file.recorded_ns == recorded_ns
