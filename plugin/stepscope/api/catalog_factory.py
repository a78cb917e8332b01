"""The catalog of `stepscope serve` and TensorBoard: prefetching, summaries, cluster."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from stepscope.api.prefetch import prepare
from stepscope.base.config import Settings
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.readers.cluster import Cluster
    from stepscope.summaries.store import Store

log = logging.getLogger(__name__)
MISSING = (
    "summaries of runs with many files are not stored: that needs pyarrow "
    "(pip install 'stepscope[cache]')"
)
CLUSTER_JOBS = 128
"""Concurrent files on a cluster: each takes a waiting thread here."""


def catalog_for(
    directories: Iterable[LogDirectory],
    settings: Settings,
    advice: "AdviceSettings | None",
    cluster: "Cluster | None",
) -> Catalog:
    """Return the catalog of log directories; summaries are read on the cluster, if any."""
    return Catalog(
        directories,
        CatalogOptions(
            settings=settings,
            prepare=prepare,
            advice=advice,
            store=_store_opener(settings, advice),
            summary_reader=cluster,
            summary_jobs=CLUSTER_JOBS,
        ),
    )


def cluster_of(settings: Settings) -> "Cluster | None":
    """Return the cluster of the settings, if any; it connects on first use."""
    if not settings.scheduler:
        return None
    from stepscope.readers.cluster import Cluster  # noqa: PLC0415 (rarely needed)

    return Cluster(settings.scheduler)


def _store_opener(
    settings: Settings, advice: "AdviceSettings | None"
) -> "Callable[[], Store] | None":
    """Return the function that opens the store of summaries; None where they are off."""
    if settings.summaries.location is not None:
        return partial(_store, settings, advice)
    if find_spec("pyarrow") is None:
        log.info("%s", MISSING)
    return None


def _store(settings: Settings, advice: "AdviceSettings | None") -> "Store":
    from stepscope.advice import AdviceSettings  # noqa: PLC0415 (imports pandas)
    from stepscope.summaries.store import Store  # noqa: PLC0415

    return Store(settings.summaries, advice or AdviceSettings())
