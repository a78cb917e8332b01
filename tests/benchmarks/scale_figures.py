"""Figures on scaling: printed with their limits, and stored for docs/scaling.md."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.scaled import ROOT

STORED = ROOT / "docs" / "scaling_figures.json"
console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured value."""

    key: str
    text: str
    value: float
    unit: str = ""
    most: float | None = None
    """Upper limit, if there is one."""
    least: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether it meets its limit; None without a limit."""
        if self.most is None and self.least is None:
            return None
        return (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )

    @property
    def bar(self) -> str:
        """The limit as text."""
        if self.most is not None:
            return f"≤ {self.most:,g}"
        return "" if self.least is None else f"≥ {self.least:,g}"

    def line(self) -> str:
        """Return the figure with its limit and whether it is met."""
        shown = f"  {self.text:<72} {self.value:>10,.4g} {self.unit}"
        verdict = {None: "", True: "yes", False: "NO"}[self.holds]
        return f"{shown}  {self.bar}: {verdict}" if verdict else shown


def condition(key: str, text: str, *, holds: bool) -> Figure:
    """Return a figure that is 1 if a condition holds, as it must."""
    return Figure(key=key, text=text, value=float(holds), least=1)


def show(title: str, figures: Iterable[Figure]) -> None:
    """Print figures, and store them with those measured before."""
    console.print(f"\n{title}")
    stored = dict(measured_figures())
    for figure in figures:
        console.print(figure.line())
        stored[figure.key] = {
            "text": figure.text,
            "value": float(f"{figure.value:.4g}"),
            "unit": figure.unit,
            "bar": figure.bar,
            "holds": figure.holds,
        }
        _write(stored)


def note(key: str, text: str) -> None:
    """Store a note on the measurement."""
    _write({**measured_figures(), key: {"text": text}})


def _write(figures: Mapping[str, Mapping[str, object]]) -> None:
    text = json.dumps(dict(sorted(figures.items())), indent=2, ensure_ascii=False)
    STORED.write_text(f"{text}\n", encoding="utf-8")


def measured_figures(path: Path = STORED) -> Mapping[str, Mapping[str, object]]:
    """Return the stored figures, by key."""
    figures: Mapping[str, Mapping[str, object]] = (
        json.loads(path.read_text()) if path.exists() else {}
    )
    return figures


def value(key: str) -> float:
    """Return a stored figure.

    Raises:
        KeyError: it was not measured.
    """
    return float(str(measured_figures()[key]["value"]))
