"""A simulated step as text, Markdown or JSON."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from stepscope.base.formatting import count, duration, duration_range, share, share_range
from stepscope.render.json import indented
from stepscope.render.terminal import WIDTH, layout
from stepscope.replay.simulation import LOADING, WAITING
from stepscope.replay.what_if import Prediction

Row = tuple[str, str, str, str]
COLUMNS: Row = ("", "recorded", "simulated", "change")


SUBJECTS = {WAITING: "Launches and waits are", LOADING: "Waiting for workers is"}


def json(prediction: Prediction) -> str:
    """Return the prediction as JSON."""
    return indented(prediction)


def markdown(prediction: Prediction) -> str:
    """Return the prediction as Markdown."""
    lines = [
        f"**{headline(prediction)}**",
        "",
        *([limit(prediction), ""] if limit(prediction) else []),
        f"| {' | '.join(COLUMNS)} |",
        "|---|---:|---:|---:|",
    ]
    lines += [f"| {' | '.join(row)} |" for row in rows(prediction)]
    return "\n".join([*lines, "", *prediction.assumptions, fidelity(prediction)]) + "\n"


def text(prediction: Prediction, *, width: int = WIDTH, is_coloured: bool = False) -> str:
    """Return the prediction for a terminal of `width` columns."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in COLUMNS:
        table.add_column(name, justify="right" if name else "left")
    for row in rows(prediction):
        table.add_row(*row)
    heading = [Text(headline(prediction), style="bold")]
    heading += [Text(limit(prediction))] if limit(prediction) else []
    notes = (*prediction.assumptions, fidelity(prediction))
    dim = (Text(note, style="dim") for note in notes)
    return layout((*heading, Text(), table, Text(), *dim), width=width, is_coloured=is_coloured)


def headline(prediction: Prediction) -> str:
    """Return the result in one sentence."""
    recorded, fastest = prediction.recorded_ns, prediction.simulated_ns
    slowest = fastest if prediction.slowest_ns is None else prediction.slowest_ns
    subject = "The step takes" if prediction.step_count else "The trace takes"
    if recorded == fastest == slowest:
        return f"{subject} {duration(recorded)}, as recorded."
    times = f"{duration_range(fastest, slowest)} instead of {duration(recorded)}"
    if fastest < recorded < slowest:
        return f"{subject} {times}."
    verb = "saves" if recorded >= slowest else "costs"
    low, high = sorted(abs(recorded - simulated) for simulated in (slowest, fastest))
    fractions = share_range(low / max(1, recorded), high / max(1, recorded))
    return f"{subject} {times}: it {verb} {duration_range(low, high)} ({fractions})."


def limit(prediction: Prediction) -> str:
    """Return what takes most of the path that determines the simulated end, in one sentence."""
    total_ns = sum(part.simulated_ns for part in prediction.limits)
    if not total_ns:
        return ""
    part = max(prediction.limits, key=lambda part: part.simulated_ns)
    subject = SUBJECTS.get(part.name, f"The {part.name} is")
    is_changed = prediction.simulated_ns != prediction.recorded_ns
    when, end = " then" if is_changed else "", "step" if prediction.step_count else "trace"
    fraction = share(part.simulated_ns / total_ns)
    return f"{subject}{when} the limit: {fraction} of the path to the {end}'s end."


def rows(prediction: Prediction) -> Iterator[Row]:
    """Yield the step, and the parts of the path that determines its end."""
    whole = "Mean step" if prediction.step_count else "Whole trace"
    yield _row(whole, prediction.recorded_ns, prediction.simulated_ns)
    for part in prediction.limits:
        yield _row(f"of which {part.name}", part.recorded_ns, part.simulated_ns)


def _row(name: str, recorded_ns: int, simulated_ns: int) -> Row:
    change = simulated_ns - recorded_ns
    sign = "-" if change < 0 else "+" if change else ""
    return name, duration(recorded_ns), duration(simulated_ns), f"{sign}{duration(abs(change))}"


def fidelity(prediction: Prediction) -> str:
    """Return how well the replay describes this trace."""
    steps = f"{count(prediction.step_count, 'recorded step')}. " if prediction.step_count else ""
    return (
        f"{steps}Replayed without changes, with typical delays, the trace ends within "
        f"{share(abs(prediction.replay_error))} of its recorded end."
    )
