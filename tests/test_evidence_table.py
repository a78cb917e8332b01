"""A table of evidence in a terminal: no number is ever cut, and texts share what is left."""

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from stepscope.base.findings import EvidenceColumn, EvidenceRow, EvidenceTable
from stepscope.render.evidence_table import evidence_table

COLUMNS = (
    EvidenceColumn(label="Operator", unit="code"),
    EvidenceColumn(label="Shapes", unit="text"),
    EvidenceColumn(label="Calls", unit="count"),
    EvidenceColumn(label="Kernel time a step", unit="ns"),
    EvidenceColumn(label="Of all kernels", unit="share"),
)
SHAPES = "[[32,64,56,56],[64,64,3,3],[],[],[],[],[],[]]"


def shown(table: EvidenceTable, width: int) -> list[str]:
    written = StringIO()
    console = Console(file=written, width=width)
    for part in evidence_table(table, width=width):
        console.print(part, crop=False)
    return written.getvalue().splitlines()


def table(*rows: tuple[str, str, int, int, float]) -> EvidenceTable:
    return EvidenceTable(
        label="Operators", columns=COLUMNS, rows=tuple(EvidenceRow(cells=row) for row in rows)
    )


@pytest.mark.parametrize("width", [66, 77, 120])
def test_long_texts_are_folded_and_numbers_stand_whole(width: int) -> None:
    lines = shown(
        table(
            ("aten::cudnn_convolution_backward_input", SHAPES, 36, 2_570_000, 0.026),
            ("aten::mm", "[[1,2],[2,3]]", 1204, 999_000, 0.011),
        ),
        width,
    )
    text = "\n".join(lines)
    for number in ("36", "1,204", "2.57 ms", "999 µs", "2.6 %", "1.1 %"):
        assert number in text
    assert max(map(len, lines)) <= width
    assert "kernels" in text


@given(
    st.lists(st.text("abc:_[],0123 ", min_size=1, max_size=120), min_size=1, max_size=4),
    st.integers(40, 120),
)
def test_whatever_the_texts_no_number_is_lost(texts: list[str], width: int) -> None:
    rows = [(text, text[::-1], 12_345, 2_570_000, 0.026) for text in texts]
    text = " ".join(line.strip() for line in shown(table(*rows), width))
    assert text.count("2.57 ms") == text.count("12,345") == text.count("2.6 %") == len(texts)
