"""docs/images/pairs.svg: the estimated range of each pair against its realised saving."""

import math
from collections.abc import Iterator, Sequence

from loading import ROOT
from score.ranges import Holds
from score.turn_pairs import TurnPair

FILE = ROOT / "docs" / "images" / "pairs.svg"
SIZE, MARGIN = 480, 56
LEAST, MOST = 0.005, 1.0
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
COLORS: dict[Holds, str] = {"yes": "#0b7a5e", "within noise": "#b07d00", "no": "#c0392b"}
LEGEND: dict[Holds, str] = {
    "yes": "contained",
    "within noise": "within the jitter",
    "no": "missed",
}


def position(fraction: float) -> float:
    """Return the distance of a fraction of the step from the origin, in pixels."""
    clipped = min(MOST, max(LEAST, fraction))
    return (SIZE - 2 * MARGIN) * math.log(clipped / LEAST) / math.log(MOST / LEAST)


def picture(pairs: Sequence[TurnPair]) -> str:
    """Return the picture; both axes are fractions of the step, on logarithmic scales."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" '
        'font-family="sans-serif" font-size="11" fill="#333">',
        f'<rect width="{SIZE}" height="{SIZE}" fill="#fff"/>',
        *_axes(),
        *(line for pair in pairs for line in _mark(pair)),
        *_legend(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _x(fraction: float) -> str:
    return f"{MARGIN + position(fraction):.1f}"


def _y(fraction: float) -> str:
    return f"{SIZE - MARGIN - position(fraction):.1f}"


def _line(ends: tuple[str, str, str, str], style: str) -> str:
    x1, y1, x2, y2 = ends
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>'


def _axes() -> Iterator[str]:
    for tick in TICKS:
        yield _line((_x(tick), _y(LEAST), _x(tick), _y(MOST)), 'stroke="#e4e4e4"')
        yield _line((_x(LEAST), _y(tick), _x(MOST), _y(tick)), 'stroke="#e4e4e4"')
        label = f"{tick * 100:g} %"
        yield f'<text x="{_x(tick)}" y="{SIZE - MARGIN + 16}" text-anchor="middle">{label}</text>'
        yield f'<text x="{MARGIN - 6}" y="{_y(tick)}" dy="4" text-anchor="end">{label}</text>'
    yield _line((_x(LEAST), _y(LEAST), _x(MOST), _y(MOST)), 'stroke="#888" stroke-dasharray="4 3"')
    middle = SIZE / 2
    yield (
        f'<text x="{middle:g}" y="{SIZE - 14}" text-anchor="middle">realised saving, of the step'
        "</text>"
    )
    yield (
        f'<text transform="translate(14 {middle:g}) rotate(-90)" text-anchor="middle">'
        "estimated range, of the step</text>"
    )


def _mark(pair: TurnPair) -> Iterator[str]:
    estimate, holds = pair.estimate(), pair.holds()
    if holds not in COLORS:
        return
    step_ns, x = pair.before_ns, _x(pair.realised_ns / pair.before_ns)
    style = f'stroke="{COLORS[holds]}" stroke-width="2" stroke-opacity="0.75"'
    low, high = _y(estimate.low / step_ns), _y(estimate.high / step_ns)
    title = f"<title>{pair.name}</title>"
    yield f"<g>{title}{_line((x, low, x, high), style)}"
    shown = min(estimate.high, max(estimate.low, pair.realised_ns))
    yield f'<circle cx="{x}" cy="{_y(shown / step_ns)}" r="2.5" fill="{COLORS[holds]}"/></g>'


def _legend() -> Iterator[str]:
    for index, (holds, text) in enumerate(LEGEND.items()):
        y = MARGIN + 14 * index
        style = f'stroke="{COLORS[holds]}" stroke-width="2"'
        left = MARGIN + 10
        yield _line((f"{left}", f"{y}", f"{left + 16}", f"{y}"), style)
        yield f'<text x="{left + 22}" y="{y + 4}">{text}</text>'
