"""Write the figures and the model into docs/scaling.md, between its marks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale_figures import measured_figures, value
from benchmarks.scaled import ROOT

PAGE = ROOT / "docs" / "scaling.md"
MARK = "<!-- {name}: written by `python -m benchmarks.scale` -->"
END = "<!-- end -->"
PARTS = {
    "growth/": "Ranks",
    "names/": "Faults that the advice names",
    "merge/": "Merging",
    "file/": "One trace",
    "look/": "Second run, from summaries",
    "dask/": "Dask",
    "kill/": "Killed workers",
    "s3/": "S3 bucket",
    "listing/": "Listing",
}
LEAST_RANKS = 256
"""Fewer are read in one process, which needs different memory."""
PREDICTED = ((1024, 2), (1024, 150), (16_384, 2), (16_384, 150))
PLACES = (("2 cores, as measured", 2, False), ("laptop, 8 cores", 8, False),
          ("Dask, 64 cores", 64, True), ("Dask, 1,024 cores", 1024, True))  # fmt: skip
GZIP_RATIO = 11
"""Compression ratio of a synthetic trace."""
SECONDS = ((3600, 3600, "h"), (60, 60, "min"), (0, 1, "s"))


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Parameters of the model, in seconds and megabytes."""

    file_seconds: float
    megabyte_seconds: float
    rank_seconds: float
    task_seconds: float
    listing_seconds: float
    rank_megabytes: float
    base_megabytes: float

    @classmethod
    def measured(cls) -> "Costs":
        """Return the parameters from the last measurement.

        Raises:
            KeyError: one was not measured.
        """
        sizes = [int(key.split("/")[1]) for key in measured_figures() if key.endswith("/own")]
        most = max(sizes, default=LEAST_RANKS)
        ranks = most - 2
        small, large = value(f"growth/{LEAST_RANKS}/own"), value(f"growth/{most}/own")
        a_rank = max(0.0, (large - small) / max(1, most - LEAST_RANKS))
        return cls(
            file_seconds=value("file/fixed") / 1000,
            megabyte_seconds=value("file/megabyte") / 1000,
            rank_seconds=(value("merge/merged") + value("merge/json")) / ranks,
            task_seconds=max(0.0, value("dask/trivial")) / 1000,
            listing_seconds=value("listing/folder") / 1000 / 1000,
            rank_megabytes=a_rank,
            base_megabytes=max(0.0, large - a_rank * ranks),
        )

    def seconds(self, ranks: int, megabytes: float, cores: int, *, is_cluster: bool) -> float:
        """Return the time of a first run, s."""
        reading = ranks * (self.file_seconds + megabytes * self.megabyte_seconds) / cores
        if is_cluster:
            reading = max(reading, ranks * self.task_seconds)
        return ranks * self.listing_seconds + reading + ranks * self.rank_seconds

    def lines(self) -> Iterator[str]:
        """Yield the costs as a table."""
        rows = (
            ("`file`", "CPU time per file, of any size", f"{1000 * self.file_seconds:.0f} ms"),
            ("`megabyte`", "CPU time per MB of JSON", f"{1000 * self.megabyte_seconds:.1f} ms"),
            ("`rank`", "merging the summary of a rank, and writing its report",
             f"{1000 * self.rank_seconds:.1f} ms"),
            ("`task`", "scheduling a file on Dask; not divided by the cores",
             f"{1000 * self.task_seconds:.1f} ms"),
            ("`listing`", "listing a file in a local folder",
             f"{1e6 * self.listing_seconds:.0f} µs"),
            ("`memory`", "memory of the client process per rank, beyond"
             f" {self.base_megabytes:.0f} MB", f"{self.rank_megabytes:.2f} MB"),
        )  # fmt: skip
        yield from ("| | cost | measured |", "|---|---|---:|")
        yield from (f"| {name} | {text} | {figure} |" for name, text, figure in rows)


def write() -> None:
    """Write the page's tables from the stored figures."""
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (("measured", _measured()), ("costs", _costs()), ("model", _model())):
        text = _between(text, name, "\n".join(lines))
    PAGE.write_text(text, encoding="utf-8")


def _between(text: str, name: str, content: str) -> str:
    mark = MARK.format(name=name)
    pattern = re.compile(f"{re.escape(mark)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(text):
        msg = f"{Path(PAGE).name} has no {mark}"
        raise ValueError(msg)
    return pattern.sub(lambda _: f"{mark}\n\n{content}\n\n{END}", text)


def _measured() -> Iterator[str]:
    figures = measured_figures()
    machine = str(figures.get("machine", {}).get("text", ""))
    yield f"Measured on one machine: {machine}."
    yield ""
    yield from ("| | measured | limit | met |", "|---|---:|---:|---|")
    for prefix, title in PARTS.items():
        load = figures.get(f"load/{prefix.rstrip('/')}", {}).get("text")
        noted = f" ({load})" if load else ""
        keys = [key for key in figures if key.startswith(prefix)]
        if keys:
            yield f"| **{title}**{noted} | | | |"
        for key in sorted(keys, key=_order):
            row = figures[key]
            holds = {None: "", True: "yes", False: "**no**"}[row["holds"]]  # type: ignore[index]
            shown = _shown(
                float(str(row["value"])), str(row["unit"]), is_condition=row["bar"] == "≥ 1"
            )
            bar = "" if row["bar"] in ("", "≥ 1") else f"{row['bar']} {row['unit']}".strip()
            yield f"| {row['text']} | {shown} | {bar} | {holds} |"


def _order(key: str) -> tuple[object, ...]:
    return tuple(int(part) if part.isdigit() else -1 for part in key.split("/")), key


def _shown(number: float, unit: str, *, is_condition: bool) -> str:
    if is_condition and number in (0, 1):
        return "yes" if number else "no"
    text = f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
    return f"{text} {unit}".strip()


def _costs() -> Iterator[str]:
    try:
        yield from Costs.measured().lines()
    except KeyError as missing:
        yield f"Not measured yet: {missing}."


def _model() -> Iterator[str]:
    try:
        costs = Costs.measured()
    except KeyError:
        return
    places = " | ".join(name for name, _, _ in PLACES)
    yield f"| ranks, JSON each | {places} | memory | data, gzipped |"
    yield "|---|" + "---:|" * (len(PLACES) + 2)
    for ranks, megabytes in PREDICTED:
        took = " | ".join(
            _time(costs.seconds(ranks, megabytes, cores, is_cluster=is_cluster))
            for _, cores, is_cluster in PLACES
        )
        memory = costs.base_megabytes + ranks * costs.rank_megabytes
        size = ranks * megabytes / 1000 / GZIP_RATIO
        yield (
            f"| {ranks:,} of {megabytes} MB | {took} | {memory / 1000:.1f} GB | {size:,.1f} GB |"
        )


def _time(seconds: float) -> str:
    for least, unit, name in SECONDS:
        if seconds >= 2 * least:
            return f"{seconds / unit:.0f} {name}"
    raise AssertionError(seconds)
