"""Tables and lists in Markdown."""

from collections.abc import Iterable, Iterator, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table; a column whose name ends in `:` stands to the right."""
    names = [name.removesuffix(":") for name in columns]
    yield f"| {' | '.join(names)} |"
    yield f"|{'|'.join('---:' if name.endswith(':') else '---' for name in columns)}|"
    for row in rows:
        yield f"| {' | '.join(cell(each) for each in row)} |"
    yield ""


def cell(text: str) -> str:
    """Return text as it may stand in a cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def names(runs: Iterable[str]) -> str:
    """Return names as code, or a dash where there are none."""
    return ", ".join(f"`{each}`" for each in runs) or "–"


def part(count: int, total: int) -> str:
    """Return a count of a total: `3 of 4`, or a dash where there are none."""
    return f"{count} of {total}" if total else "–"
