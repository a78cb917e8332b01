"""What commands want of recordings: of the summaries that are kept, and of files that are read."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from stepscope.cli.file_reading import Effort, order_for, read

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.base.config import Settings
    from stepscope.readers.batch import OnResult, Outcome
    from stepscope.readers.requests import ReadRequest, ReadResult, Step
    from stepscope.storage.discover import TraceFile
    from stepscope.summaries.store import Store
    from stepscope.summaries.summary import Summary


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a command wants of each recording, in both of the ways to come by it."""

    steps: "Callable[[AdviceSettings], tuple[Step, ...]]"
    """What works it out alone, by the settings of its run."""
    of: "Callable[[Summary], Any]"
    """What takes it from a summary; None where it is not there."""
    with_samples: bool = False
    """Whether it is in the summary's sample."""


def with_summaries(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option that says where summaries are kept, to `effort`."""

    @click.option(
        "--summaries",
        metavar="PLACE",
        help="Keep what recordings say there, and read no file again that is known: a folder, "
        "s3://…, 1 for your cache folder, 0 for nowhere.  [default: 1 for runs of 16 or more]",
    )
    @wraps(command)
    def with_place(*, effort: Effort, summaries: str | None, **given: object) -> None:
        command(effort=replace(effort, summaries=summaries), **given)

    return with_place


def values_of(
    files: "Sequence[TraceFile]", wanted: Wanted, rules: "AdviceSettings", settings: "Settings"
) -> "list[Any]":
    """Return what is wanted of each file, or the `UnreadableError` of one, in their order.

    Files that are known are not read; those of large runs that are read are known from then on.

    Raises:
        UsageError: the rules' settings name a rule or an option that there is not.
    """
    by_run = {file.run: rules.for_run(file.run) for file in files}
    orders = [order_for(file, wanted.steps(by_run[file.run]), settings) for file in files]
    counts = Counter(file.folder for file in files)
    if not settings.summaries.is_for(max(counts.values(), default=0)):
        return _values(read(orders, settings))
    keeping = _Keeping(
        wanted=wanted,
        orders={order.file.id: order for order in orders},
        kept=frozenset(each for each, count in counts.items() if settings.summaries.is_for(count)),
        rules=rules,
        settings=settings,
    )
    values = keeping.values()
    return [values[file.id] for file in files]


def _values(outcomes: "Iterable[Outcome]") -> list[Any]:
    from stepscope.base.errors import UnreadableError

    return [each if isinstance(each, UnreadableError) else each.prepared for each in outcomes]


@dataclass(frozen=True, kw_only=True)
class _Keeping:
    """Recordings of which some belong to runs whose summaries are kept."""

    wanted: Wanted
    orders: "Mapping[str, ReadRequest]"
    """By the files' ids, in their order; they give what is wanted, and no summary."""
    kept: frozenset[str]
    """Folders of the runs whose summaries are kept."""
    rules: "AdviceSettings"
    settings: "Settings"

    def values(self) -> dict[str, Any]:
        from stepscope.summaries.store import Store

        store = Store(self.settings.summaries, self.rules)
        values = self._known(store)
        try:
            values |= self._read(values, self._summarising, partial(self._arrived, store))
        finally:
            store.flush()
        return values | self._read(values, lambda order: order)  # what summaries lack: to tell why

    def _known(self, store: "Store") -> dict[str, Any]:
        files = [
            (order.file, order.stamp)
            for order in self.orders.values()
            if order.stamp is not None and order.file.folder in self.kept
        ]
        known = store.find(files, with_samples=self.wanted.with_samples)
        return {each: self.wanted.of(summary) for each, summary in known.items()}

    def _read(
        self,
        values: "Mapping[str, Any]",
        as_asked: "Callable[[ReadRequest], ReadRequest]",
        arrived: "OnResult | None" = None,
    ) -> dict[str, Any]:
        """Return what the files give for which there is no value yet."""
        orders = [order for each, order in self.orders.items() if values.get(each) is None]
        outcomes = (
            read([as_asked(order) for order in orders], self.settings, arrived) if orders else ()
        )
        return dict(zip((order.file.id for order in orders), _values(outcomes), strict=True))

    def _summarising(self, order: "ReadRequest") -> "ReadRequest":
        """Return the order to summarise a file, where its summary is kept."""
        from stepscope.readers.tasks import analyse, summarise

        if order.file.folder not in self.kept:
            return order
        task = partial(summarise, settings=self.rules.for_run(order.file.run))
        return replace(order, steps=(("analysing", analyse), ("advising", task)))

    def _arrived(self, store: "Store", answer: "ReadResult") -> "ReadResult":
        """Keep a summary, and go on with what is wanted of it alone."""
        from stepscope.summaries.summary import Summary

        summary = answer.prepared
        if not isinstance(summary, Summary):
            return answer
        order = self.orders[summary.advice.worker.trace]
        store.add(order.file, order.stamp, summary)
        return replace(answer, prepared=self.wanted.of(summary))
