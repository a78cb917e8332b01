"""Shared files: the page with its responses about some runs, within a size.

The responses come from the app itself, in the order of their importance, so that a file shows what
the page shows. The file's notes list what does not fit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import sleep

import flask
import msgspec

from stepscope._version import __version__
from stepscope.advice import AdviceSettings
from stepscope.api import page, shared_requests
from stepscope.api.app import create_app
from stepscope.api.catalog_factory import catalog_for
from stepscope.api.shared_requests import Json, key, request
from stepscope.api.shared_responses import LEAST_SPACE, MOST_POLLS, POLL_SECONDS, Responses, Space
from stepscope.api.shared_timeline import SharedTimeline, timeline_of
from stepscope.base.config import Settings
from stepscope.base.errors import MissingDataError, UnreadableError, UsageError
from stepscope.base.formatting import count, duration, size
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Queued, Reading, Unreadable
from stepscope.render import shared_file as rendered
from stepscope.storage.discover import TraceFile

FOLDER = "shared"
"""The page for shared files, in the folder of the page."""
DEFAULT_BYTES = 5_000_000
LEAST_BYTES = 1_000_000
MOST_COMPARED = 4
"""Most other runs that a run is compared with."""
MOST_WHOLE = 16
"""Most traces of a run that the page compares as a whole."""
TRACKS_BYTES = 4000
"""Space for the list of a timeline's tracks."""
VIEWS, TABLES, TIMELINES, DETAILS = 0.6, 0.7, 0.9, 0.96
"""Fractions of the space that are used up after these parts at most."""

OnProgress = Callable[[str], None]
NOT_BUILT = "the page of stepscope is not built"
BUILD = "Run `npm run build` in the folder `frontend`, or `make demo`."


@dataclass(frozen=True, kw_only=True)
class SharedFile:
    """A file, and what it leaves out."""

    html: bytes
    notes: tuple[str, ...]
    """Sentences."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The largest size of a file, and the function that receives its progress."""

    most_bytes: int = DEFAULT_BYTES
    on_progress: OnProgress = lambda _: None


DEFAULTS = Options()


@dataclass(frozen=True, kw_only=True)
class _Trace:
    run: str
    id: str
    label: str
    """Label of its span."""


def of_files(
    files: Sequence[TraceFile],
    settings: Settings,
    advice: AdviceSettings | None = None,
    options: Options = DEFAULTS,
) -> SharedFile:
    """Read files, and return a shared file about them; files that cannot be read are left out.

    Raises:
        MissingDataError: The page is not built.
        UnreadableError: No file can be read.
        UsageError: The size is too small for the advice on any trace.
    """
    catalog = catalog_for((), settings, advice, None)
    catalog.adopt(files)
    catalog.start_reading()
    try:
        _wait(catalog, len(files), options.on_progress)
        return of_app(create_app(catalog), options=options)
    finally:
        catalog.close()


def _wait(catalog: Catalog, file_count: int, on_progress: OnProgress) -> None:
    """Wait until the files are read; one that is still being written is not waited for."""
    while True:
        states = [entry.state for entry in catalog.entries()]
        coming_count = sum(isinstance(state, Queued | Reading) for state in states)
        if not coming_count:
            break
        on_progress(f"reading: {file_count - coming_count} of {count(file_count, 'file')}")
        sleep(POLL_SECONDS)
    problems = [state.problem for state in states if isinstance(state, Unreadable)]
    if problems and len(problems) == len(states):
        first = problems[0]
        raise UnreadableError(first.path, first.message, first.remedy)


def of_app(
    app: flask.Flask,
    run: str | None = None,
    base_url: str | None = None,
    options: Options = DEFAULTS,
) -> SharedFile:
    """Return a file about all runs of an app, or about one; traces that are not read are left out.

    `base_url` is an address that the app accepts.

    Raises:
        MissingDataError: The page is not built.
        UnreadableError: No trace is read.
        UsageError: The size is too small for the advice on any trace.
    """
    folder = Path(app.config[page.FOLDER]) / FOLDER
    if not rendered.is_built(folder):
        raise MissingDataError(NOT_BUILT, BUILD)
    responses = Responses(app.test_client(), base_url)
    runs = _listing(responses, run)
    traces = list(_traces(runs))
    if not traces:
        raise UnreadableError(run or "", "no trace is read", "`stepscope health` says why.")
    only = runs["runs"][0]["name"]
    title = only if len(runs["runs"]) == 1 else count(len(runs["runs"]), "run")
    frame = rendered.render(_content(responses, ()), title, folder)
    responses.space = Space(options.most_bytes - len(frame) - LEAST_SPACE)
    writing = _Writing(responses, runs, traces)
    writing.fill(options.on_progress)
    advice = (shared_requests.advice(trace.run, trace.id) for trace in traces)
    if not any(key(of) in responses.packed for of in advice):
        limit = size(options.most_bytes)
        msg = f"{limit} cannot hold the advice: select fewer traces, or allow a larger file"
        raise UsageError(msg)
    notes = tuple(writing.notes())
    html = rendered.render(_content(responses, notes), title, folder)
    return SharedFile(html=html, notes=notes)


def _content(responses: Responses, notes: tuple[str, ...]) -> rendered.Content:
    return rendered.Content(
        version=__version__,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        notes=notes,
        responses=responses.packed,
        statuses=responses.statuses,
    )


def _listing(responses: Responses, run: str | None) -> Json:
    """Return the list of runs when their results are there, without the folders of this machine."""
    runs: Json = {"runs": []}
    for _ in range(MOST_POLLS):
        runs = msgspec.json.decode(responses.body(request("runs")) or b"{}")
        if not runs["has_pending_results"]:
            break
        sleep(POLL_SECONDS)
    for problem, name in _problems(runs):
        problem["path"] = name
    shown = [entry for entry in runs["runs"] if run is None or entry["id"] == run]
    settled = {"logdir": "", "scanning": False, "loading": False, "has_pending_results": False}
    return {**runs, **settled, "runs": shown, "problems": []}


def _problems(runs: Json) -> Iterator[tuple[Json, str]]:
    """Yield the problem of each unreadable file with the file's name."""
    for run in runs["runs"]:
        for worker in run["workers"]:
            for span in worker["spans"]:
                if span["problem"] is not None:
                    yield span["problem"], span["file"]


def _traces(runs: Json) -> Iterator[_Trace]:
    for run in runs["runs"]:
        for worker in run["workers"]:
            for span in worker["spans"]:
                if span["state"] == "ready":
                    yield _Trace(run=run["id"], id=span["trace"], label=span["label"])


class _Writing:
    """The parts of a file in the order of their importance."""

    def __init__(self, responses: Responses, runs: Json, traces: Sequence[_Trace]) -> None:
        self._responses = responses
        self._runs = runs
        self._traces = traces
        self._timelines: list[SharedTimeline] = []

    def fill(self, on_progress: OnProgress) -> None:
        """Add all parts, as far as they fit."""
        space = self._responses.space
        on_progress("adding the advice")
        self._add_advice()
        on_progress("adding the views")
        space.open_to(VIEWS)
        self._add_views()
        on_progress("adding tables")
        space.open_to(TABLES)
        self._add_tables()
        on_progress("adding timelines")
        space.open_to(TIMELINES)
        self._add_levels()
        on_progress("adding details")
        space.open_to(DETAILS)
        self._add_details()
        on_progress("refining timelines")
        space.open_to(1)
        space.left_bytes -= len(self._timelines) * TRACKS_BYTES
        for line in self._timelines:
            line.refine()
        self._add_levels()
        space.open_to(1)
        self._put_tracks()

    def _add_advice(self) -> None:
        responses, get = self._responses, self._responses.get
        responses.put(request("runs"), self._runs)
        for trace in self._traces:
            responses.add("advice", shared_requests.of_advice(trace.run, trace.id, get))
        responses.add("lists", shared_requests.of_page())
        for trace in self._traces:
            if (line := timeline_of(trace.id, get)) is not None:
                self._timelines.append(line)
                responses.add("timelines", [request(f"traces/{trace.id}/timeline/names")])
        for trace in self._traces:
            responses.add("pictures", shared_requests.of_findings(trace.run, trace.id, get))

    def _add_views(self) -> None:
        responses = self._responses
        for run in self._runs["runs"]:
            labels = sorted({trace.label for trace in self._traces if trace.run == run["id"]})
            sides = _sides(run, self._runs)
            responses.add("charts", shared_requests.of_run(run["id"], labels, sides))
        for trace in self._traces:
            if responses.space.is_full:
                responses.left_out["traces' views"] += 1
                continue
            responses.add("charts", shared_requests.of_views(trace.id, responses.get))
            fixes = shared_requests.of_fixes(trace.run, trace.id, responses.get)
            responses.add("charts", fixes)

    def _add_tables(self) -> None:
        responses = self._responses
        for run in self._runs["runs"]:
            tables = shared_requests.of_run_tables(run["id"], responses.get)
            responses.add_smallest("tables", tables)
        space = responses.space
        for number, trace in enumerate(self._traces):
            others_bytes = space.left_bytes - space.left_bytes // (len(self._traces) - number)
            space.left_bytes -= others_bytes
            tables = shared_requests.of_trace_tables(trace.id, responses.get)
            responses.add_smallest("tables", tables)
            space.left_bytes += others_bytes

    def _add_details(self) -> None:
        for trace in self._traces:
            if self._responses.space.is_full:
                self._responses.left_out["traces' details"] += 1
                continue
            requests = shared_requests.of_details(trace.id, self._responses.get)
            self._responses.add("details of rows", requests)

    def _add_levels(self) -> None:
        """Add levels of all timelines, the coarse ones first, so that all become equally fine."""
        responses = self._responses
        while unfinished := [line for line in self._timelines if line.next_level is not None]:
            for line in unfinished:
                line.add_level(responses.body, responses.store)

    def _put_tracks(self) -> None:
        for line in self._timelines:
            of = request(f"traces/{line.trace}/timeline/tracks")
            tracks = self._responses.get(of)
            note = " ".join(filter(None, (tracks["note"], line.note)))
            self._responses.put(of, {**tracks, "levels": line.levels, "note": note})

    def notes(self) -> Iterator[str]:
        """Yield what the file leaves out, as sentences."""
        yield "It holds the views of whole traces, not those of a step or a time range."
        yield f"Long tables hold their first {count(shared_requests.MOST_ROWS, 'row')}."
        merged = sorted(line.merged_ns for line in self._timelines if line.merged_ns)
        if merged:
            times = "–".join(dict.fromkeys(map(duration, (merged[0], merged[-1]))))
            yield f"Timelines are decimated: slices shorter than {times} are merged."
        if rounding_ns := max((line.rounding_ns for line in self._timelines), default=0):
            yield f"Times in the timeline are rounded to {duration(rounding_ns)}."
        left_out = self._responses.left_out
        parts = [f"{number:,} {part}" for part, number in left_out.items() if number]
        if parts:
            yield f"Left out for its size: {', '.join(parts)}."
        spans = [worker["spans"] for run in self._runs["runs"] for worker in run["workers"]]
        all_count = sum(map(len, spans))
        if (missing := all_count - len(self._traces)) > 0:
            yield f"{missing:,} of {count(all_count, 'trace')} were not read."


def _sides(run: Json, runs: Json) -> Iterator[dict[str, str]]:
    """Yield the comparisons that the page shows first: with other runs, or within the run."""
    for other in runs["runs"][:MOST_COMPARED]:
        if other["id"] != run["id"]:
            yield {"run": run["id"], "base_run": other["id"]}
    labels = [span["label"] for worker in run["workers"] for span in worker["spans"]]
    if len(labels) > MOST_WHOLE:
        return
    spans = list(dict.fromkeys(labels))[-2:]
    if len(spans) == 2:
        before, after = spans
        yield {"run": run["id"], "span": after, "base_run": run["id"], "base_span": before}
    elif len(run["workers"]) > 1:
        before, after = (worker["name"] for worker in run["workers"][:2])
        yield {"run": run["id"], "worker": after, "base_run": run["id"], "base_worker": before}
