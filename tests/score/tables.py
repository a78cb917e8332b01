"""Tables and lists in Markdown."""

from collections.abc import Iterable, Iterator, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table; a column whose name ends in `:` is aligned to the right."""
    names = [name.removesuffix(":") for name in columns]
    yield f"| {' | '.join(names)} |"
    yield f"|{'|'.join('---:' if name.endswith(':') else '---' for name in columns)}|"
    for row in rows:
        yield f"| {' | '.join(cell(text) for text in row)} |"
    yield ""


def cell(text: str) -> str:
    """Return text escaped for a cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def names(runs: Iterable[str]) -> str:
    """Return names as code, or a dash without any."""
    return ", ".join(f"`{run}`" for run in runs) or "–"


def part(count: int, total: int) -> str:
    """Return a count of a total: `3 of 4`, or a dash for a total of 0."""
    return f"{count} of {total}" if total else "–"
