"""Options of the catalog."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stepscope.base.config import Settings
from stepscope.catalog.summary_cache import SummaryStore
from stepscope.readers.pool import Reader

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.summaries.summary import Summary


class Executor(Protocol):
    """Runs jobs in the background."""

    def submit(self, job: Callable[[], None], /) -> object:
        """Schedule a job and return immediately."""


@dataclass(frozen=True, kw_only=True)
class CatalogOptions:
    """Readers, executors and settings of a catalog."""

    settings: Settings = field(default_factory=Settings)
    executor: Executor | None = None
    """Default: `settings.jobs` daemon threads."""
    reader: Reader | None = None
    """Default: a pool of processes."""
    prepare: "Callable[..., Summary] | None" = None
    """Work on a trace before it is `Ready`; returns its summary. It receives the trace and, with
    `advice`, its run's settings as `settings`.
    """
    advice: "AdviceSettings | None" = None
    store: Callable[[], SummaryStore] | None = None
    """Opens the persistent store of summaries."""
    summary_reader: Reader | None = None
    """Reads files of which only the summary is needed: a cluster."""
    summary_jobs: int = 1
    """Number of files that `summary_reader` reads at once."""
