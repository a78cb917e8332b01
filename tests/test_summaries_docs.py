"""The page on the data set of summaries names every column that there is, and its type."""

import re
from collections.abc import Iterator

import pyarrow as pa

from loading import ROOT
from stepscope.summaries.summary_rows import SCHEMA

ROW = re.compile(r"^\| `([\w.\[\]]+)` \| ([^|]+) \| (.+) \|$", re.MULTILINE)


def columns(field: pa.Field, within: str = "") -> Iterator[tuple[str, str]]:
    """Each column that holds no struct, by its path, and its type in words."""
    path, of = f"{within}{field.name}", field.type
    if pa.types.is_struct(of):
        for each in of:
            yield from columns(each, f"{path}.")
    elif pa.types.is_list(of) and pa.types.is_struct(of.value_type):
        for each in of.value_type:
            yield from columns(each, f"{path}[].")
    else:
        yield path, words(of) + ("?" if field.nullable else "")


def words(of: pa.DataType) -> str:
    if pa.types.is_list(of):
        return f"list of {words(of.value_type)}"
    if pa.types.is_map(of):
        return f"map of {words(of.item_type)}"
    if pa.types.is_struct(of):
        return f"({', '.join(words(each.type) for each in of)})"
    return "text" if pa.types.is_string(of) else str(of)


def test_every_column_is_on_the_page_with_its_type_and_meaning() -> None:
    text = (ROOT / "docs" / "summaries.md").read_text(encoding="utf-8")
    table = text.partition("## Columns")[2]
    described = [(path, kind) for path, kind, _ in ROW.findall(table)]
    assert described == [column for field in SCHEMA for column in columns(field)]
