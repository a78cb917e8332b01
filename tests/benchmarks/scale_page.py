"""Write the figures and what follows from them into docs/scaling.md, between its marks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale_figures import known, value
from benchmarks.scaled import ROOT

PAGE = ROOT / "docs" / "scaling.md"
MARK = "<!-- {name}: written by `python -m benchmarks.scale` -->"
END = "<!-- end -->"
PARTS = {
    "growth/": "Ranks",
    "names/": "What the advice names",
    "merge/": "Putting together",
    "file/": "A recording",
    "look/": "A second look",
    "dask/": "Dask",
    "kill/": "A worker killed",
    "s3/": "A bucket",
    "listing/": "Listing",
}
LEAST_RANKS = 256
"""Fewer are read in one process, whose memory is another."""
PREDICTED = ((1024, 2), (1024, 150), (16_384, 2), (16_384, 150))
PLACES = (("2 cores, as measured", 2, False), ("laptop, 8 cores", 8, False),
          ("Dask, 64 cores", 64, True), ("Dask, 1,024 cores", 1024, True))  # fmt: skip
GZIP_RATIO = 11
"""Times that gzip shrinks a synthetic recording."""
SECONDS = ((3600, 3600, "h"), (60, 60, "min"), (0, 1, "s"))


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What the model rests on, in seconds and megabytes."""

    file_seconds: float
    megabyte_seconds: float
    rank_seconds: float
    task_seconds: float
    listing_seconds: float
    rank_megabytes: float
    base_megabytes: float

    @classmethod
    def measured(cls) -> "Costs":
        """Return what was measured last.

        Raises:
            KeyError: not all of it was.
        """
        sizes = [int(key.split("/")[1]) for key in known() if key.endswith("/own")]
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
        """Return how long a first look takes."""
        reading = ranks * (self.file_seconds + megabytes * self.megabyte_seconds) / cores
        if is_cluster:
            reading = max(reading, ranks * self.task_seconds)
        return ranks * self.listing_seconds + reading + ranks * self.rank_seconds

    def lines(self) -> Iterator[str]:
        """Yield the costs as a table."""
        rows = (
            ("`file`", "processor a file, however small", f"{1000 * self.file_seconds:.0f} ms"),
            ("`megabyte`", "processor a MB of JSON", f"{1000 * self.megabyte_seconds:.1f} ms"),
            ("`rank`", "putting a rank's summary together with the others', and writing what is"
             " said of it", f"{1000 * self.rank_seconds:.1f} ms"),
            ("`task`", "handing out a file on Dask; not shared between cores",
             f"{1000 * self.task_seconds:.1f} ms"),
            ("`listing`", "a file that is found in a local folder",
             f"{1e6 * self.listing_seconds:.0f} µs"),
            ("`memory`", "of the asking process, a rank, beyond"
             f" {self.base_megabytes:.0f} MB", f"{self.rank_megabytes:.2f} MB"),
        )  # fmt: skip
        yield from ("| | cost | measured |", "|---|---|---:|")
        yield from (f"| {name} | {text} | {figure} |" for name, text, figure in rows)


def write() -> None:
    """Write the page's tables again from what was measured."""
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
    kept = known()
    machine = str(kept.get("machine", {}).get("text", ""))
    yield f"Measured on one machine: {machine}."
    yield ""
    yield from ("| | measured | bar | holds |", "|---|---:|---:|---|")
    for prefix, title in PARTS.items():
        load = kept.get(f"load/{prefix.rstrip('/')}", {}).get("text")
        noted = f" ({load})" if load else ""
        own = [key for key in kept if key.startswith(prefix)]
        if own:
            yield f"| **{title}**{noted} | | | |"
        for key in sorted(own, key=_order):
            row = kept[key]
            holds = {None: "", True: "yes", False: "**no**"}[row["holds"]]  # type: ignore[index]
            shown = _shown(float(str(row["value"])), str(row["unit"]), is_told=row["bar"] == "≥ 1")
            bar = "" if row["bar"] in ("", "≥ 1") else f"{row['bar']} {row['unit']}".strip()
            yield f"| {row['text']} | {shown} | {bar} | {holds} |"


def _order(key: str) -> tuple[object, ...]:
    return tuple(int(part) if part.isdigit() else -1 for part in key.split("/")), key


def _shown(number: float, unit: str, *, is_told: bool) -> str:
    if is_told and number in (0, 1):
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
    yield f"| ranks, JSON each | {places} | memory | to be read, gzipped |"
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
