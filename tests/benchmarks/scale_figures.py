"""Figures of how stepscope scales: shown beside their bars, and kept for docs/scaling.md."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.scaled import ROOT

KEPT = ROOT / "docs" / "scaling_figures.json"
console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One thing that was measured."""

    key: str
    text: str
    value: float
    unit: str = ""
    most: float | None = None
    """What it may be at most, where there is a bar."""
    least: float | None = None

    @property
    def holds(self) -> bool | None:
        """Tell whether it meets its bar; None where there is none."""
        if self.most is None and self.least is None:
            return None
        return (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )

    @property
    def bar(self) -> str:
        """The bar, as text."""
        if self.most is not None:
            return f"≤ {self.most:,g}"
        return "" if self.least is None else f"≥ {self.least:,g}"

    def line(self) -> str:
        """Return it with its bar and whether that holds."""
        shown = f"  {self.text:<72} {self.value:>10,.4g} {self.unit}"
        verdict = {None: "", True: "yes", False: "NO"}[self.holds]
        return f"{shown}  {self.bar}: {verdict}" if verdict else shown


def told(key: str, text: str, *, holds: bool) -> Figure:
    """Return a figure that is 1 where something holds, as it must."""
    return Figure(key=key, text=text, value=float(holds), least=1)


def show(title: str, figures: Iterable[Figure]) -> None:
    """Print figures, and keep them beside those that were measured before."""
    console.print(f"\n{title}")
    kept = dict(known())
    for figure in figures:
        console.print(figure.line())
        kept[figure.key] = {
            "text": figure.text,
            "value": float(f"{figure.value:.4g}"),
            "unit": figure.unit,
            "bar": figure.bar,
            "holds": figure.holds,
        }
        _write(kept)


def note(key: str, text: str) -> None:
    """Keep a word on how the figures came about."""
    _write({**known(), key: {"text": text}})


def _write(kept: Mapping[str, Mapping[str, object]]) -> None:
    text = json.dumps(dict(sorted(kept.items())), indent=2, ensure_ascii=False)
    KEPT.write_text(f"{text}\n", encoding="utf-8")


def known(path: Path = KEPT) -> Mapping[str, Mapping[str, object]]:
    """Return what was measured before, by key."""
    found: Mapping[str, Mapping[str, object]] = (
        json.loads(path.read_text()) if path.exists() else {}
    )
    return found


def value(key: str) -> float:
    """Return a figure that was measured.

    Raises:
        KeyError: it was not.
    """
    return float(str(known()[key]["value"]))
