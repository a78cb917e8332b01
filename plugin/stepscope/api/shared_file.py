"""Shared files: the page with its responses about some runs, within a size.

The responses come from the app itself, in the order of their importance, so that a file shows what
the page shows. What does not fit is left out; the file's notes say so.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import sleep

import flask
import msgspec
from flask.testing import FlaskClient

from stepscope._version import __version__
from stepscope.api import page, shared_requests
from stepscope.api.http_errors import EXPECTED
from stepscope.api.shared_requests import Json, Request, Value, key, request, texts
from stepscope.api.shared_timeline import SharedTimeline, timeline_of
from stepscope.base.errors import MissingDataError, UnreadableError, UsageError
from stepscope.base.formatting import count, duration, size
from stepscope.render import shared_file as rendered

FOLDER = page.STATIC / "shared"
DEFAULT_BYTES = 5_000_000
LEAST_BYTES = 1_000_000
POLL_SECONDS = 0.05
MOST_POLLS = 1200
"""Requests repeated for a trace whose events were released, about a minute."""
MOST_COMPARED = 4
MOST_WHOLE = 16
"""Most traces of a run that the page compares as a whole."""
LEAST_SPACE = 2000
"""With less space, nothing is requested any more."""
ENTRY_BYTES = 8
"""Punctuation of an entry of the file."""

VIEWS, TABLES, TIMELINES, DETAILS = 0.6, 0.7, 0.9, 0.96
"""Fractions of the space that are used up after these parts at most."""

OnProgress = Callable[[str], None]
NOT_BUILT = "The page of stepscope is not built: run `npm run build` in `frontend`, or `make demo`."


@dataclass(frozen=True, kw_only=True)
class SharedFile:
    """A file, and what it leaves out."""

    html: bytes
    notes: tuple[str, ...]
    """Sentences."""


@dataclass(frozen=True, kw_only=True)
class _Trace:
    run: str
    id: str
    label: str
    """Label of its span."""


class _Space:
    """The space for responses in a file, of which parts are opened one after the other."""

    def __init__(self, all_bytes: int) -> None:
        self._all_bytes = all_bytes
        self.left_bytes = 0
        self.used_bytes = 0

    def open_to(self, fraction: float) -> None:
        """Let a fraction of the whole space be used."""
        self.left_bytes = int(self._all_bytes * fraction) - self.used_bytes

    def take(self, needed_bytes: int) -> bool:
        """Take space, unless there is less."""
        if needed_bytes > self.left_bytes:
            return False
        self.left_bytes -= needed_bytes
        self.used_bytes += needed_bytes
        return True


class _Responses:
    """Responses of the app, and those that the file holds."""

    def __init__(self, client: FlaskClient, base_url: str | None) -> None:
        self._client = client
        self._base_url = base_url
        self._cached: dict[str, tuple[bytes, int]] = {}
        self.space = _Space(0)
        self.packed: dict[str, str] = {}
        self.statuses: dict[str, int] = {}
        self.left_out: Counter[str] = Counter()
        """Number of responses that did not fit, by part of the file."""

    def get(self, of: Request) -> Json:
        """Return a response; None for a refusal."""
        body, status = self._response(of)
        return msgspec.json.decode(body) if status == 200 else None

    def body(self, of: Request) -> bytes | None:
        """Return a response's bytes; None for a refusal. It is not kept."""
        response = self._send(of)
        return response[0] if response[1] == 200 else None

    def put(self, of: Request, message: Json) -> bool:
        """Add a response in place of the app's."""
        return self.store([(of, msgspec.json.encode(message))])

    def store(self, bodies: Iterable[tuple[Request, bytes]]) -> bool:
        """Add responses: all, or none where they do not fit."""
        entries: dict[str, str] = {}
        needed_bytes = 0
        for of, body in bodies:
            name, text = key(of), rendered.packed(body)
            entries[name] = text
            needed_bytes += len(name) + len(text) + ENTRY_BYTES
            if needed_bytes > self.space.left_bytes:
                return False
        self.packed.update(entries)
        return self.space.take(needed_bytes)

    def add(self, part: str, requests: Iterable[Request]) -> None:
        """Add responses as long as they fit."""
        for of in requests:
            if key(of) in self.packed:
                continue
            if self.space.left_bytes < LEAST_SPACE:
                self.left_out[part] += 1
                continue
            body, status = self._response(of)
            if status != 200:
                if msgspec.json.decode(body)["code"] not in EXPECTED:
                    continue
                self.statuses[key(of)] = status
            if not self.store([(of, body)]):
                self.left_out[part] += 1

    def add_smallest(self, part: str, requests: Iterable[Request]) -> None:
        """Add the smallest responses as long as they fit."""
        responses = [(of, response) for of in requests if (response := self.get(of)) is not None]
        bodies = [(of, msgspec.json.encode(_cut(table))) for of, table in responses]
        for of, body in sorted(bodies, key=lambda entry: len(entry[1])):
            self.left_out[part] += not self.store([(of, body)])

    def _response(self, of: Request) -> tuple[bytes, int]:
        name = key(of)
        if name not in self._cached:
            self._cached[name] = self._send(of)
        return self._cached[name]

    def _send(self, of: Request) -> tuple[bytes, int]:
        """Return a response and its status; a trace whose events are read again is waited for."""
        query = {name: texts(value) for name, value in of.parameters.items()}
        for _ in range(MOST_POLLS):
            response = self._client.get(
                f"/api/{of.path}", query_string=query, base_url=self._base_url
            )
            body, status = response.get_data(), response.status_code
            is_awaited = status == 409 and msgspec.json.decode(body)["code"] == "still-loading"
            if not is_awaited:
                break
            sleep(POLL_SECONDS)
        return body, status


def _cut(table: Json) -> Json:
    """Return a public table as if it had no other rows, which its meaning then names."""
    row_count, all_row_count = table["row_count"], table["all_row_count"]
    if all_row_count is None or all_row_count <= row_count:
        return table
    rows = f"This file holds the first {row_count:,} of {count(all_row_count, 'row')}."
    meaning = f"{table['meaning']} {rows}"
    return {**table, "all_row_count": row_count, "meaning": meaning}


def write(
    app: flask.Flask,
    *,
    run: str | None = None,
    most_bytes: int = DEFAULT_BYTES,
    base_url: str | None = None,
    on_progress: OnProgress = lambda _: None,
    folder: Path = FOLDER,
) -> SharedFile:
    """Return a file about all runs of an app, or about one; traces that are not read are left out.

    Args:
        app: The app, whose responses are stored.
        run: Id of the only run.
        most_bytes: Largest size of the file.
        base_url: An address that the app accepts.
        on_progress: Receives what is being added.
        folder: The page for shared files.

    Raises:
        MissingDataError: The page is not built.
        UnreadableError: No trace is read.
        UsageError: The size is too small for the advice on any trace.
    """
    if not rendered.is_built(folder):
        raise MissingDataError("The page of stepscope is not built.", NOT_BUILT)
    responses = _Responses(app.test_client(), base_url)
    runs = _listing(responses, run)
    traces = list(_traces(runs))
    if not traces:
        raise UnreadableError(run or "", "no trace is read", "Check its files with stepscope health.")
    title = runs["runs"][0]["name"] if len(runs["runs"]) == 1 else count(len(runs["runs"]), "run")
    frame = rendered.render(_content(responses, ()), title, folder)
    responses.space = _Space(most_bytes - len(frame) - LEAST_SPACE)
    responses.space.open_to(1)
    notes = _fill(responses, runs, traces, on_progress)
    if not any(f"runs/{trace.run}/advice?trace={trace.id}" in responses.packed for trace in traces):
        msg = f"{size(most_bytes)} cannot hold the advice: select fewer traces, or a larger size"
        raise UsageError(msg)
    return SharedFile(html=rendered.render(_content(responses, notes), title, folder), notes=notes)


def _content(responses: _Responses, notes: tuple[str, ...]) -> rendered.Content:
    return rendered.Content(
        version=__version__,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        notes=notes,
        responses=responses.packed,
        statuses=responses.statuses,
    )


def _listing(responses: _Responses, run: str | None) -> Json:
    """Return the list of runs when their results are there, without what is of this machine."""
    for _ in range(MOST_POLLS):
        body = responses.body(request("runs"))
        runs = msgspec.json.decode(body or b"{}")
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


def _fill(
    responses: _Responses, runs: Json, traces: list[_Trace], on_progress: OnProgress
) -> tuple[str, ...]:
    """Add the responses about traces, and return what is left out."""
    get, space = responses.get, responses.space
    on_progress("advice")
    responses.put(request("runs"), runs)
    responses.add("lists", shared_requests.of_page())
    for trace in traces:
        responses.add("advice", shared_requests.of_advice(trace.run, trace.id, get))
    timelines = [line for trace in traces if (line := timeline_of(trace.id, get)) is not None]
    for line in timelines:
        responses.add("timelines", [request(f"traces/{line.trace}/timeline/names")])
    for trace in traces:
        responses.add("pictures", shared_requests.of_findings(trace.run, trace.id, get))
    on_progress("views")
    space.open_to(VIEWS)
    for run in runs["runs"]:
        labels = sorted({trace.label for trace in traces if trace.run == run["id"]})
        responses.add("charts", shared_requests.of_run(run["id"], labels, _sides(run, runs)))
    for trace in traces:
        responses.add("charts", shared_requests.of_views(trace.id, get))
    on_progress("tables")
    space.open_to(TABLES)
    for run in runs["runs"]:
        ids = [trace.id for trace in traces if trace.run == run["id"]]
        responses.add_smallest("tables", shared_requests.of_tables(run["id"], ids, get))
    on_progress("timelines")
    space.open_to(TIMELINES)
    _add_levels(responses, timelines)
    on_progress("details")
    space.open_to(DETAILS)
    for trace in traces:
        responses.add("details of rows", shared_requests.of_details(trace.id, get))
    on_progress("timelines")
    space.open_to(1)
    for line in timelines:
        line.refine()
    _add_levels(responses, timelines, reserve_bytes=len(timelines) * TRACKS_BYTES)
    for line in timelines:
        _put_tracks(responses, line)
    return _notes(responses, runs, traces, timelines)


TRACKS_BYTES = 4000
"""Space for the list of a timeline's tracks."""


def _add_levels(
    responses: _Responses, timelines: list[SharedTimeline], *, reserve_bytes: int = 0
) -> None:
    """Add levels of all timelines, the coarse ones first, so that all become equally fine."""
    responses.space.left_bytes -= reserve_bytes
    while unfinished := [line for line in timelines if line.next_level is not None]:
        for line in unfinished:
            line.add_level(responses.body, responses.store)
    responses.space.left_bytes += reserve_bytes


def _put_tracks(responses: _Responses, line: SharedTimeline) -> None:
    of = request(f"traces/{line.trace}/timeline/tracks")
    tracks = responses.get(of)
    note = " ".join(filter(None, (tracks["note"], line.note)))
    responses.put(of, {**tracks, "levels": line.levels, "note": note})


def _sides(run: Json, runs: Json) -> Iterator[dict[str, str]]:
    """Yield the comparisons that the page shows first: with other runs, or within the run."""
    for other in runs["runs"][:MOST_COMPARED]:
        if other["id"] != run["id"]:
            yield {"run": run["id"], "base_run": other["id"]}
    if sum(len(worker["spans"]) for worker in run["workers"]) > MOST_WHOLE:
        return
    labels = [span["label"] for worker in run["workers"] for span in worker["spans"]]
    spans = list(dict.fromkeys(labels))[-2:]
    if len(spans) == 2:
        before, after = spans
        yield {"run": run["id"], "span": after, "base_run": run["id"], "base_span": before}
    elif len(run["workers"]) > 1:
        before, after = (worker["name"] for worker in run["workers"][:2])
        yield {"run": run["id"], "worker": after, "base_run": run["id"], "base_worker": before}


def _notes(
    responses: _Responses, runs: Json, traces: list[_Trace], timelines: list[SharedTimeline]
) -> tuple[str, ...]:
    notes = [
        "It holds the views of whole traces; a step or a time range is not in it.",
        f"Long tables hold their first {count(shared_requests.MOST_ROWS, 'row')}.",
    ]
    notes += dict.fromkeys(line.note for line in timelines if line.note)
    if rounding_ns := max((line.rounding_ns for line in timelines), default=0):
        notes.append(f"Times in the timeline are rounded to {duration(rounding_ns)}.")
    left_out = [f"{number:,} {part}" for part, number in responses.left_out.items() if number]
    if left_out:
        notes.append(f"Left out for its size: {', '.join(left_out)}.")
    all_count = sum(len(worker["spans"]) for run in runs["runs"] for worker in run["workers"])
    if all_count > len(traces):
        notes.append(f"{all_count - len(traces):,} of {count(all_count, 'trace')} were not read.")
    return tuple(notes)
