"""Responses of the app for a shared file, within a size."""

import re
from collections import Counter
from collections.abc import Iterable
from time import sleep

import msgspec
from flask.testing import FlaskClient

from stepscope.api.http_errors import EXPECTED
from stepscope.api.shared_requests import Json, Request, key, texts
from stepscope.base import urls
from stepscope.base.formatting import count
from stepscope.render.shared_file import encoded, packed

POLL_SECONDS = 0.05
MOST_POLLS = 1200
"""Requests repeated for a trace whose events are read again, about a minute."""
LEAST_SPACE = 2000
"""With less space, nothing is requested any more."""
LEAST_SPACE_OF_TABLES = 10_000
"""With less space, no table is built, which takes long."""
MOST_CACHED_BYTES = 64 * 2**20
"""Responses that later requests depend on; beyond it, they are requested again."""
OK = 200
LASTING = EXPECTED - {"still-loading", "busy"}
"""Refusals that a file holds; the page would repeat requests after the others."""
OF_THIS_MACHINE = re.compile(rb'"problems?":\[?\{|"waiting_count":[1-9]')
"""Parts of responses that a file does not hold as the server sends them."""


class Space:
    """The space for responses in a file, of which fractions are opened one after the other."""

    def __init__(self, all_bytes: int) -> None:
        self._all_bytes = all_bytes
        self.left_bytes = all_bytes
        self._used_bytes = 0

    def open_to(self, fraction: float) -> None:
        """Let a fraction of the whole space be used."""
        self.left_bytes = int(self._all_bytes * fraction) - self._used_bytes

    @property
    def is_full(self) -> bool:
        """Whether there is no space for any more responses."""
        return self.left_bytes < LEAST_SPACE

    def take(self, needed_bytes: int) -> bool:
        """Take space, unless there is less."""
        if needed_bytes > self.left_bytes:
            return False
        self.left_bytes -= needed_bytes
        self._used_bytes += needed_bytes
        return True

    def release(self, taken_bytes: int) -> None:
        """Return space that was taken."""
        self.left_bytes += taken_bytes
        self._used_bytes -= taken_bytes


class Responses:
    """Responses of the app, and those that the file holds."""

    def __init__(self, client: FlaskClient, base_url: str | None) -> None:
        self._client = client
        self._base_url = base_url
        self._cached: dict[str, tuple[bytes, int]] = {}
        self._cached_bytes = 0
        self.space = Space(0)
        self.packed: dict[str, str] = {}
        self.statuses: dict[str, int] = {}
        """Statuses of the refusals in the file."""
        self.left_out: Counter[str] = Counter()
        """Number of responses that did not fit, by their noun."""
        self.unrequested: set[str] = set()
        """Nouns of which some responses were not requested, so that there may be fewer."""

    def get(self, of: Request) -> Json:
        """Return a response; None for a refusal."""
        body, status = self._response(of)
        return msgspec.json.decode(body) if status == OK else None

    def body(self, of: Request) -> bytes | None:
        """Return the bytes of a response that is not requested again; None for a refusal."""
        body, status = self._send(of)
        return body if status == OK else None

    def put(self, of: Request, message: Json) -> bool:
        """Add a response in place of the app's, if it fits."""
        return self.store([(of, msgspec.json.encode(message))])

    def store(self, bodies: Iterable[tuple[Request, bytes]], status: int = OK) -> bool:
        """Add responses of a status: all, or none where they do not fit."""
        entries: dict[str, str] = {}
        needed_bytes = 0
        for of, body in bodies:
            name, text = key(of), packed(body)
            entries[name] = text
            needed_bytes += entry_bytes(name, text, status)
            if needed_bytes > self.space.left_bytes:
                return False
        self.packed.update(entries)
        if status != OK:
            self.statuses.update(dict.fromkeys(entries, status))
        return self.space.take(needed_bytes)

    def add(self, noun: str, requests: Iterable[Request]) -> None:
        """Add responses as long as they fit; those that the app cannot give are passed over."""
        for of in requests:
            if key(of) in self.packed:
                continue
            if self.space.is_full:
                self._count_unrequested(noun, 1)
                continue
            body, status = self._response(of)
            if status != OK and msgspec.json.decode(body)["code"] not in LASTING:
                continue
            if not self.store([(of, body)], status) and status == OK:
                self.left_out[noun] += 1

    def _count_unrequested(self, noun: str, number: int) -> None:
        self.left_out[noun] += number
        self.unrequested.add(noun)

    def add_smallest(self, noun: str, requests: Iterable[Request]) -> None:
        """Add tables, the small ones first, as long as they fit."""
        if self.space.left_bytes < LEAST_SPACE_OF_TABLES:
            self._count_unrequested(noun, len(list(requests)))
            return
        tables = [(of, table) for of in requests if (table := self.get(of)) is not None]
        bodies = [(of, msgspec.json.encode(_as_whole(table))) for of, table in tables]
        for of, body in sorted(bodies, key=lambda entry: len(entry[1])):
            self.left_out[noun] += not self.store([(of, body)])

    def _response(self, of: Request) -> tuple[bytes, int]:
        name = key(of)
        if name in self._cached:
            return self._cached[name]
        response = self._send(of)
        if self._cached_bytes > MOST_CACHED_BYTES:
            self._cached.clear()
            self._cached_bytes = 0
        self._cached[name] = response
        self._cached_bytes += len(response[0])
        return response

    def _send(self, of: Request) -> tuple[bytes, int]:
        """Return a response and its status; a trace whose events are read again is waited for."""
        query = {name: texts(value) for name, value in of.parameters.items()}
        body, status = b"", 409
        for _ in range(MOST_POLLS):
            response = self._client.get(
                f"/api/{of.path}", query_string=query, base_url=self._base_url
            )
            body, status = response.get_data(), response.status_code
            if status != 409 or msgspec.json.decode(body)["code"] != "still-loading":
                break
            sleep(POLL_SECONDS)
        if status == OK and body.startswith(b"{") and OF_THIS_MACHINE.search(body):
            body = msgspec.json.encode(_settled(msgspec.json.decode(body)))
        return body, status


def entry_bytes(name: str, text: str, status: int = OK) -> int:
    """Return the size of a packed response in the file, with its key and status."""
    key_bytes = len(encoded(name).encode())
    of_status = 0 if status == OK else key_bytes + len(f":{status},")
    return key_bytes + len(text) + len(':"",') + of_status


def _settled(message: Json) -> Json:
    """Return a response without the folders of unreadable files, and without files to wait for."""
    if isinstance(message, list):
        return [_settled(item) for item in message]
    if not isinstance(message, dict):
        return message
    settled = {name: _settled(value) for name, value in message.items()}
    if settled.get("waiting_count"):
        settled["waiting_count"] = 0
    problems = [settled.get("problem"), *(settled.get("problems") or ())]
    for problem in problems:
        if isinstance(problem, dict):
            _remove_folder(problem)
    return settled


def _remove_folder(problem: Json) -> None:
    path = problem["path"]
    name = urls.name(path)
    folder = path.removesuffix(name)
    for field in ("message", "remedy"):
        text = problem[field].replace(path, name)
        problem[field] = text.replace(folder, "") if len(folder) > 1 else text
    problem["path"] = name


def _as_whole(table: Json) -> Json:
    """Return a public table as if it had no more rows, which its meaning then counts."""
    row_count, all_row_count = table["row_count"], table["all_row_count"]
    if all_row_count is None or all_row_count <= row_count:
        return table
    rows = f"This file holds the first {row_count:,} of {count(all_row_count, 'row')}."
    meaning = f"{table['meaning']} {rows}"
    return {**table, "all_row_count": row_count, "meaning": meaning}
