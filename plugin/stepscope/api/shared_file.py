"""Shared files: the page with its responses about some runs, within a size.

The responses come from the app itself, in the order of their importance, so that a file shows what
the page shows. The file's notes list what does not fit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from stepscope.api.shared_requests import Json, Request, key, request
from stepscope.api.shared_responses import (
    MOST_POLLS,
    POLL_SECONDS,
    Responses,
    Space,
    entry_bytes,
)
from stepscope.api.shared_timeline import SharedTimeline, timeline_of
from stepscope.base.config import Settings
from stepscope.base.errors import MissingDataError, UnreadableError, UsageError
from stepscope.base.formatting import count, duration, file_size
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Queued, Reading, Unreadable
from stepscope.render import shared_file as rendered
from stepscope.storage.discover import TRACE_NAME, TraceFile

FOLDER = "shared"
"""The page for shared files, in the folder of the page."""
DEFAULT_BYTES = 5_000_000
LEAST_BYTES = 1_000_000
MOST_COMPARED = 4
"""Most other runs that a run is compared with."""
MOST_WHOLE = 16
"""Most traces of a run that the page compares as a whole."""
NOTES_BYTES = 2000
"""Space for the notes."""
MARGIN_BYTES = 100
"""Most by which a shorter list of tracks is larger when compressed."""
SCOPES = ("spans", "folder", "all")
"""Scopes of trends; equal for one run alone."""
VIEWS, TABLES, TIMELINES, DETAILS = 0.6, 0.7, 0.9, 0.96
"""Fractions of the space that are used up after these parts at most."""

PLURALS: Mapping[str, str] = {"response of the advice": "responses of the advice"}

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
    responses.space = Space(options.most_bytes - len(frame) - NOTES_BYTES)
    if not responses.put(request("runs"), runs):
        raise _too_small(options)
    writing = _Writing(responses, runs, traces)
    writing.fill(options.on_progress)
    advice = (shared_requests.advice(trace.run, trace.id) for trace in traces)
    if not any(key(of) in responses.packed for of in advice):
        raise _too_small(options)
    notes = tuple(writing.notes())
    html = rendered.render(_content(responses, notes), title, folder)
    return SharedFile(html=html, notes=notes)


def _too_small(options: Options) -> UsageError:
    limit = file_size(options.most_bytes)
    msg = f"{limit} cannot hold the advice: select fewer traces, or allow a larger file"
    return UsageError(msg)


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
    shown = [entry for entry in runs["runs"] if run is None or entry["id"] == run]
    settled = {"logdir": "", "scanning": False, "loading": False, "has_pending_results": False}
    return {**runs, **settled, "runs": shown, "problems": []}


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
        self._reserved_bytes: dict[str, int] = {}
        """Space for the list of tracks, by trace."""
        self._without_views_count = 0
        self._without_details_count = 0

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
        self._begin_timelines()
        self._add_levels()
        on_progress("adding details")
        space.open_to(DETAILS)
        self._add_details()
        on_progress("refining timelines")
        space.open_to(1)
        for line in self._timelines:
            line.refine()
        self._add_levels()
        space.open_to(1)
        self._put_tracks()

    def _add_advice(self) -> None:
        responses, get = self._responses, self._responses.get
        for trace in self._traces:
            responses.add(
                "response of the advice", shared_requests.of_advice(trace.run, trace.id, get)
            )
        responses.add("list", shared_requests.of_page())
        for trace in self._traces:
            responses.add("picture", shared_requests.of_findings(trace.run, trace.id, get))

    def _add_views(self) -> None:
        responses = self._responses
        for run in self._runs["runs"]:
            labels = sorted({trace.label for trace in self._traces if trace.run == run["id"]})
            scopes, sides = self._scopes(run["id"]), self._sides(run)
            get = responses.get
            responses.add("chart", shared_requests.of_run(run["id"], labels, scopes, sides, get))
        for trace in self._traces:
            if responses.space.is_full:
                self._without_views_count += 1
                continue
            responses.add("chart", shared_requests.of_views(trace.id, responses.get))
            fixes = shared_requests.of_fixes(trace.run, trace.id, responses.get)
            responses.add("chart", fixes)

    def _scopes(self, run: str) -> Sequence[str]:
        """Return the scopes of trends to request; of one run, all are its spans."""
        if len(self._runs["runs"]) > 1:
            return SCOPES
        spans, *others = (request("trends", run=run, scope=scope) for scope in SCOPES)
        trends = self._responses.get(spans)
        if trends is not None:
            for other in others:
                self._responses.put(other, trends)
        return SCOPES[:1]

    def _sides(self, run: Json) -> Iterator[dict[str, str]]:
        """Yield the comparisons of a run; no run outside the file is read."""
        of = shared_requests.candidates(run["id"])
        if len(self._runs["runs"]) > 1:
            response = self._responses.get(of)
            candidates = response["candidates"] if response else []
        else:
            candidates = []
            self._responses.put(of, {"schema": SCHEMA_VERSION, "candidates": []})
        return _sides(run, self._runs, candidates)

    def _add_tables(self) -> None:
        responses = self._responses
        for run in self._runs["runs"]:
            tables = shared_requests.of_run_tables(run["id"], responses.get)
            responses.add_smallest("table", tables)
        space = responses.space
        for number, trace in enumerate(self._traces):
            others_bytes = space.left_bytes - space.left_bytes // (len(self._traces) - number)
            space.left_bytes -= others_bytes
            tables = shared_requests.of_trace_tables(trace.id, responses.get)
            responses.add_smallest("table", tables)
            space.left_bytes += others_bytes

    def _add_details(self) -> None:
        for trace in self._traces:
            if self._responses.space.is_full:
                self._without_details_count += 1
                continue
            requests = shared_requests.of_details(trace.id, self._responses.get)
            self._responses.add("detail", requests)

    def _add_levels(self) -> None:
        """Add levels of all timelines, the coarse ones first, so that all become equally fine."""
        responses = self._responses
        while unfinished := [line for line in self._timelines if line.next_level is not None]:
            for line in unfinished:
                line.add_level(responses.body, responses.store)

    def _begin_timelines(self) -> None:
        """Add the timelines' names, and reserve space for their lists of tracks."""
        responses = self._responses
        for trace in self._traces:
            line = timeline_of(trace.id, responses.get)
            if line is None:
                continue
            names = request(f"traces/{trace.id}/timeline/names")
            body = responses.body(names)
            listed = rendered.packed(msgspec.json.encode(line.longest_listed))
            needed_bytes = entry_bytes(key(_tracks(line)), listed) + MARGIN_BYTES
            if body is None or not responses.space.take(needed_bytes):
                responses.left_out["timeline"] += 1
            elif not responses.store([(names, body)]):
                responses.space.release(needed_bytes)
                responses.left_out["timeline"] += 1
            else:
                self._reserved_bytes[trace.id] = needed_bytes
                self._timelines.append(line)

    def _put_tracks(self) -> None:
        """Add the lists of tracks of the timelines with a level."""
        for line in self._timelines:
            self._responses.space.release(self._reserved_bytes[line.trace])
            if not line.levels or not self._responses.put(_tracks(line), line.listed):
                self._responses.left_out["timeline"] += 1

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
        if parts := list(self._left_out()):
            yield f"Left out for its size: {', '.join(parts)}."
        spans = [worker["spans"] for run in self._runs["runs"] for worker in run["workers"]]
        all_count = sum(map(len, spans))
        if (missing := all_count - len(self._traces)) > 0:
            verb = "was" if missing == 1 else "were"
            yield f"{missing:,} of {count(all_count, 'trace')} {verb} not read."

    def _left_out(self) -> Iterator[str]:
        """Yield what does not fit, as counts with their nouns."""
        for noun, number in self._responses.left_out.items():
            if number:
                limit = "at most " if noun in self._responses.unrequested else ""
                yield f"{limit}{count(number, noun, PLURALS.get(noun, ''))}"
        if self._without_views_count:
            yield f"the views of {count(self._without_views_count, 'trace')}"
        if self._without_details_count:
            yield f"the details of {count(self._without_details_count, 'trace')}"


def _tracks(line: SharedTimeline) -> Request:
    return request(f"traces/{line.trace}/timeline/tracks")


def _sides(run: Json, runs: Json, candidates: Sequence[Json]) -> Iterator[dict[str, str]]:
    """Yield the comparisons that the page shows first: the default one, others, in the run."""
    baseline = _baseline(run, runs, candidates)
    others = [candidate["run"] for candidate in candidates]
    if baseline is None:
        yield from _sides_in_run(run)
    for other in sorted(others, key=lambda of: of != baseline)[:MOST_COMPARED]:
        yield {"run": run["id"], "base_run": other}
    if baseline is not None:
        yield from _sides_in_run(run)


def _baseline(run: Json, runs: Json, candidates: Sequence[Json]) -> str | None:
    """Return the default baseline, as `defaultSides` of the page chooses it."""
    same_model = {candidate["run"] for candidate in candidates if candidate["is_same_model"]}
    earlier = [
        other
        for other in runs["runs"]
        if other["id"] in same_model
        and _folder(other) == _folder(run)
        and "" < _recorded(other) < _recorded(run)
    ]
    return max(earlier, key=_recorded)["id"] if earlier else None


def _folder(run: Json) -> str:
    return str(run["name"]).rpartition("/")[0]


def _recorded(run: Json) -> str:
    """Return the time of a run's last file as 19 digits; empty if no name has a time."""
    files = (span["file"] for worker in run["workers"] for span in worker["spans"])
    times = (match["time"] or "" for file in files if (match := TRACE_NAME.match(file)))
    return max((time.ljust(19, "0") for time in times if len(time) >= 10), default="")


def _sides_in_run(run: Json) -> Iterator[dict[str, str]]:
    """Yield the comparison of the last two spans, or of two workers, that are read."""
    read = [
        (worker["name"], span["label"])
        for worker in run["workers"]
        for span in worker["spans"]
        if span["state"] == "ready"
    ]
    if not 1 < len(read) <= MOST_WHOLE:
        return
    workers, spans = (list(dict.fromkeys(names)) for names in zip(*read, strict=True))
    if len(spans) > 1:
        before, after = spans[-2:]
        yield {"run": run["id"], "span": after, "base_run": run["id"], "base_span": before}
    elif len(workers) > 1:
        before, after = workers[:2]
        yield {"run": run["id"], "worker": after, "base_run": run["id"], "base_worker": before}
