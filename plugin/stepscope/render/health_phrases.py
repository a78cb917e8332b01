"""What the health of files is called, in text and in Markdown alike."""

from stepscope.base import formatting
from stepscope.base.report import Effect, FileHealth, HealthExample, HealthItem
from stepscope.render.phrases import plain

VERDICTS: dict[Effect, str] = {
    "withheld": "Some of its figures mean nothing, and advice that rests on them is withheld.",
    "low": "Some of its figures are in doubt, and advice that rests on them has low confidence.",
    "none": "Its figures can be relied upon.",
}
EFFECTS: dict[Effect, str] = {"withheld": "Withheld", "low": "In doubt", "none": ""}
NEXT_TIME = "To record all of it next time"


def verdict(file: FileHealth) -> str:
    """Say in a sentence what a file is worth."""
    effects = {item.effect for item in file.health}
    worst: Effect = next(each for each in VERDICTS if each in effects | {"none"})
    return VERDICTS[worst]


def facts(file: FileHealth) -> str:
    """Say what was read, by what, and who wrote it."""
    events = formatting.count(file.events, "event")
    origin = " (synthetic, not recorded)" if file.synthetic else ""
    return plain(
        f"{_size(file)} · {events} · {file.dialect} · written by {file.producer}{origin} · "
        f"read by the {file.reader}"
    )


def _size(file: FileHealth) -> str:
    size = formatting.size(file.file_bytes)
    if file.inflated_bytes in {0, file.file_bytes}:
        return size
    return f"{size}, {formatting.size(file.inflated_bytes)} of JSON"


def whose(file: FileHealth) -> str:
    """Say whose recording a file is."""
    rank = f", rank {file.rank}" if file.rank is not None else ""
    return plain(f"{file.run}: {file.name}{rank}, span {file.span}")


def told(file: FileHealth) -> tuple[HealthItem, ...]:
    """Return the items to tell of; what was not recorded is told with its line of code."""
    flags = {f"no-{missing.flag}" for missing in file.record_next}
    return tuple(item for item in file.health if item.kind not in flags)


def counted(item: HealthItem) -> str:
    """Say how many there are, and how much of the file was lost."""
    of_all = f" of {item.of_count:,}" if item.of_count is not None else ""
    lost = f", {formatting.size(item.lost_bytes)} lost" if item.lost_bytes else ""
    return f"{item.count:,}{of_all}{lost}"


def affected(item: HealthItem) -> str:
    """Say what an item makes unreliable; empty where that is nothing."""
    return f"{EFFECTS[item.effect]}: {', '.join(item.affects)}" if item.affects else ""


def example(found: HealthExample) -> str:
    """Say where a thing was found, and what stands there."""
    what = " ".join(found.text.split())
    return plain(f"At byte {found.offset_bytes:,}{f': {what}' if what else ''}")
