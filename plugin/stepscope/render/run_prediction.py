"""A simulated step of a run as text, Markdown or JSON."""

from collections.abc import Iterator
from statistics import fmean

from rich.table import Table
from rich.text import Text

from stepscope.base.formatting import count, duration, number_ranges, share
from stepscope.base.plain_text import plain
from stepscope.render.json import indented
from stepscope.render.terminal import WIDTH, layout
from stepscope.replay.run_what_if import RankPrediction, RunPrediction

Row = tuple[str, ...]
COLUMNS: Row = ("", "recorded", "simulated", "change")
RANK_COLUMNS: Row = ("", "work", "simulated", "waits", "simulated")
MOST_RANKS = 5


def json(prediction: RunPrediction) -> str:
    """Return the prediction as JSON."""
    return indented(prediction)


def markdown(prediction: RunPrediction) -> str:
    """Return the prediction as Markdown."""
    lines = [
        f"**{headline(prediction)}**",
        "",
        *_table(COLUMNS, rows(prediction)),
        "",
        *_table(RANK_COLUMNS, rank_rows(prediction)),
        "",
    ]
    return "\n".join([*lines, notes(prediction)]) + "\n"


def _table(columns: Row, cells: Iterator[Row]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|---|{'---:|' * (len(columns) - 1)}"
    for row in cells:
        yield f"| {' | '.join(cell.replace('|', '¦') for cell in row)} |"


def text(prediction: RunPrediction, *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the prediction for a terminal of `width` columns."""
    parts = (
        Text(headline(prediction), style="bold"),
        Text(),
        _grid(COLUMNS, rows(prediction)),
        Text(),
        _grid(RANK_COLUMNS, rank_rows(prediction)),
        Text(),
        Text(notes(prediction), style="dim"),
    )
    return layout(parts, width=width, is_coloured=is_coloured)


def _grid(columns: Row, cells: Iterator[Row]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, justify="right" if name else "left")
    for row in cells:
        table.add_row(*row)
    return table


def headline(prediction: RunPrediction) -> str:
    """Return the result in one sentence."""
    recorded, simulated = prediction.recorded_ns, prediction.simulated_ns
    subject = "The step of the run takes" if prediction.step_count else "The run takes"
    if not prediction.is_changed:
        return f"{subject} {duration(recorded)}, as recorded."
    saved = recorded - simulated
    verb = "saves" if saved >= 0 else "costs"
    times = f"{duration(simulated)} instead of {duration(recorded)}"
    fraction = share(abs(saved) / max(1, recorded))
    return f"{subject} {times}: it {verb} {duration(abs(saved))} ({fraction})."


def rows(prediction: RunPrediction) -> Iterator[Row]:
    """Yield the mean step of the ranks, and its parts, which sum to it."""
    ranks = prediction.ranks
    whole = prediction.recorded_ns, prediction.simulated_ns
    work = fmean(of.recorded_work_ns for of in ranks), fmean(of.simulated_work_ns for of in ranks)
    wait = fmean(of.recorded_wait_ns for of in ranks), fmean(of.simulated_wait_ns for of in ranks)
    yield _row("Mean step" if prediction.step_count else "Whole run", *whole)
    yield _row("of it work", *work)
    yield _row("of it waiting for other ranks", *wait)
    yield _row(
        "of it transfer", *(max(0, a - b - c) for a, b, c in zip(whole, work, wait, strict=True))
    )


def _row(name: str, recorded_ns: float, simulated_ns: float) -> Row:
    change = simulated_ns - recorded_ns
    sign = "-" if change < 0 else "+" if change else ""
    return name, duration(recorded_ns), duration(simulated_ns), f"{sign}{duration(abs(change))}"


def rank_rows(prediction: RunPrediction) -> Iterator[Row]:
    """Yield the ranks that work longest, as recorded."""
    ordered = sorted(prediction.ranks, key=lambda rank: -rank.recorded_work_ns)
    for rank in ordered[:MOST_RANKS]:
        times = (
            rank.recorded_work_ns,
            rank.simulated_work_ns,
            rank.recorded_wait_ns,
            rank.simulated_wait_ns,
        )
        yield _name(rank), *map(duration, times)


def _name(rank: RankPrediction) -> str:
    name = plain(rank.worker) if rank.rank is None else f"Rank {rank.rank}"
    return name if rank.stage is None else f"{name}, stage {rank.stage}"


def notes(prediction: RunPrediction) -> str:
    """Return how well the replay describes the run, and the ranks that it lacks."""
    steps = f"{count(prediction.step_count, 'recorded step')} of " if prediction.step_count else ""
    error = share(prediction.replay_error)
    sentences = [
        f"{steps}{count(len(prediction.ranks), 'rank')}. Replayed without changes, with typical "
        f"transfers, the ranks' steps are within {error} of the recorded ones."
    ]
    if prediction.left_out:
        names = ", ".join(map(plain, prediction.left_out))
        sentences.append(f"Left out, since their traces are cut off: {names}.")
    if prediction.missing_ranks:
        sentences.append(
            f"Not simulated: ranks {number_ranges(prediction.missing_ranks)}. Waiting for them "
            "counts as transfer where no like collective tells them apart."
        )
    return " ".join(sentences)
