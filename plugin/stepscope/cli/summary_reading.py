"""Values of traces for commands, from saved summaries or by reading files."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stepscope.cli.file_reading import read, request_for

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.base.config import Settings
    from stepscope.readers.batch import OnResult, Outcome
    from stepscope.readers.requests import ReadRequest, ReadResult, Step
    from stepscope.storage.discover import TraceFile
    from stepscope.summaries.store import Store
    from stepscope.summaries.summary import Summary


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """The value that a command needs from each trace, and the two ways to obtain it."""

    steps: "Callable[[AdviceSettings], tuple[Step, ...]]"
    """Steps that compute the value from a file, by the settings of its run."""
    of: "Callable[[Summary], Any]"
    """Function that extracts the value from a summary; returns None if it is missing."""
    with_samples: bool = False
    """Whether the value is in the summary's sample."""


def values_of(
    files: "Sequence[TraceFile]", extract: Extraction, rules: "AdviceSettings", settings: "Settings"
) -> "list[Any]":
    """Return the value or the `UnreadableError` of each file, in order.

    Files with a summary are not read; files of large runs get a summary when they are read.

    Raises:
        UsageError: The settings name an unknown rule or option.
    """
    by_run = {file.run: rules.for_run(file.run) for file in files}
    requests = [request_for(file, extract.steps(by_run[file.run]), settings) for file in files]
    counts = Counter(file.folder for file in files)
    if not settings.summaries.is_for(max(counts.values(), default=0)):
        return _values(read(requests, settings))
    reader = _SummaryReader(
        extract=extract,
        requests={request.file.id: request for request in requests},
        folders=frozenset(f for f, count in counts.items() if settings.summaries.is_for(count)),
        rules=rules,
        settings=settings,
    )
    values = reader.values()
    return [values[file.id] for file in files]


def _values(outcomes: "Iterable[Outcome]") -> list[Any]:
    from stepscope.base.errors import UnreadableError

    return [
        outcome if isinstance(outcome, UnreadableError) else outcome.prepared
        for outcome in outcomes
    ]


@dataclass(frozen=True, kw_only=True)
class _SummaryReader:
    """Reads traces, some of them of runs with saved summaries."""

    extract: Extraction
    requests: "Mapping[str, ReadRequest]"
    """By file id, in order; these compute the value, not a summary."""
    folders: frozenset[str]
    """Folders of the runs with saved summaries."""
    rules: "AdviceSettings"
    settings: "Settings"

    def values(self) -> dict[str, Any]:
        """Return the values by file id."""
        from stepscope.summaries.store import Store

        store = Store(self.settings.summaries, self.rules)
        values = self._saved_values(store)
        try:
            values |= self._read(values, self._summary_request, partial(self._save, store))
        finally:
            store.flush()
        # values that summaries lack are computed, to report the reason
        return values | self._read(values, lambda request: request)

    def _saved_values(self, store: "Store") -> dict[str, Any]:
        files = [
            (request.file, request.stamp)
            for request in self.requests.values()
            if request.stamp is not None and request.file.folder in self.folders
        ]
        summaries = store.find(files, with_samples=self.extract.with_samples)
        return {file: self.extract.of(summary) for file, summary in summaries.items()}

    def _read(
        self,
        values: "Mapping[str, Any]",
        to_request: "Callable[[ReadRequest], ReadRequest]",
        on_result: "OnResult | None" = None,
    ) -> dict[str, Any]:
        """Return the values of files without a value."""
        missing = [r for file, r in self.requests.items() if values.get(file) is None]
        if not missing:
            return {}
        outcomes = read([to_request(r) for r in missing], self.settings, on_result)
        return dict(zip((r.file.id for r in missing), _values(outcomes), strict=True))

    def _summary_request(self, request: "ReadRequest") -> "ReadRequest":
        """Return a request for a file's summary, if its run has summaries."""
        from stepscope.readers.tasks import analyse, summarise

        if request.file.folder not in self.folders:
            return request
        task = partial(summarise, settings=self.rules.for_run(request.file.run))
        return replace(request, steps=(("analysing", analyse), ("advising", task)))

    def _save(self, store: "Store", result: "ReadResult") -> "ReadResult":
        """Save a summary, and return the result with only the value."""
        from stepscope.summaries.summary import Summary

        summary = result.prepared
        if not isinstance(summary, Summary):
            return result
        request = self.requests[summary.advice.worker.trace]
        store.add(request.file, request.stamp, summary)
        return replace(result, prepared=self.extract.of(summary))
