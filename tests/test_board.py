"""The lines on a terminal that say how far reading has come."""

from collections.abc import Sequence
from contextlib import ExitStack

import pytest
from rich.console import Console
from rich.progress import Progress

from stepscope.cli import progress_board
from stepscope.readers.requests import ReadProgress, ReadRequest
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile

KIB = 1024


class Terminal(Progress):
    """Draws nothing, and remembers the most lines that there were at once."""

    most_lines = 0

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__(console=Console(quiet=True))

    def refresh(self) -> None:
        self.most_lines = max(self.most_lines, len(self.tasks))

    def lines(self) -> list[str]:
        return [f"{each.description}: {each.fields['text']}" for each in self.tasks]


@pytest.fixture
def terminals(monkeypatch: pytest.MonkeyPatch) -> list[Terminal]:
    """The terminals that boards were shown on."""
    made: list[Terminal] = []

    def start(*_: object, **__: object) -> Terminal:
        made.append(Terminal())
        return made[-1]

    monkeypatch.setattr(progress_board, "Progress", start)
    return made


def orders(count: int) -> list[ReadRequest]:
    return [
        ReadRequest(
            file=TraceFile(id=str(rank), path=f"log/r{rank}", run="", worker="", span=""),
            stamp=FileStamp(size_bytes=KIB, modified_ns=0),
        )
        for rank in range(count)
    ]


def shown(
    wanted: Sequence[ReadRequest], terminals: list[Terminal], awaited: str
) -> list[list[str]]:
    """The lines with all files under way, with the second of them done, and with all but one."""
    seen: list[list[str]] = []
    with progress_board.board(wanted, awaited=awaited) as watch:
        blocks = [ExitStack() for _ in wanted]
        tells = [blocks[place].enter_context(watch(each)) for place, each in enumerate(wanted)]
        for tell in tells:
            tell(ReadProgress(phase="waiting", bytes_total=KIB))
        [terminal] = terminals
        seen.append(terminal.lines())
        blocks[1].close()
        seen.append(terminal.lines())
        for block in (blocks[0], *blocks[2:-1]):
            block.close()
        tells[-1](ReadProgress(phase="analysing", events=5000))
        seen.append(terminal.lines())
        blocks[-1].close()
    return seen


def test_each_of_few_files_has_a_line(terminals: list[Terminal]) -> None:
    all_of_them, all_but_one, _ = shown(orders(3), terminals, "memory")
    assert all_of_them == [
        "all 3 files: ",
        "r0: waiting for memory",
        "r1: waiting for memory",
        "r2: waiting for memory",
    ]
    assert all_but_one[0].startswith("all 3 files: 1 done · ")
    assert all_but_one[1:] == ["r0: waiting for memory", "r2: waiting for memory"]


def test_of_thousands_under_way_those_begun_first_have_a_line_and_the_others_are_counted(
    terminals: list[Terminal],
) -> None:
    first, second, last = shown(orders(2048), terminals, "a worker")
    assert first == [
        "all 2,048 files: 2,036 more being read",
        *(f"r{rank}: waiting for a worker" for rank in range(12)),
    ]
    assert second[0].startswith("all 2,048 files: 1 done · 2,035 more being read · ")
    assert second[1:] == [f"r{rank}: waiting for a worker" for rank in (0, *range(2, 13))]
    assert last[0].startswith("all 2,048 files: 2,047 done")
    assert last[1:] == ["r2047: analysing · 5,000 events"]
    assert terminals[0].most_lines == 13


def test_one_file_has_a_line_of_its_own_only(terminals: list[Terminal]) -> None:
    with progress_board.board(orders(1)) as watch, watch(orders(1)[0]) as tell:
        tell(ReadProgress(phase="reading", bytes_done=512, bytes_total=KIB))
        assert terminals[0].lines() == ["r0: reading · 512 B of 1.00 KiB"]
    assert terminals[0].lines() == []
