"""The catalog as both edges serve it: with what is read ahead, kept, and read elsewhere."""

from collections.abc import Iterable
from functools import partial
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

CLUSTER_JOBS = 128
"""Files asked of a cluster at once: a thread each, which only waits."""


def catalog_for(
    directories: Iterable[LogDirectory],
    settings: Settings,
    advice: "AdviceSettings | None",
    cluster: "Cluster | None",
) -> Catalog:
    """Return the catalog of some log directories; summaries are read on the cluster, if any."""
    return Catalog(
        directories,
        CatalogOptions(
            settings=settings,
            prepare=prepare,
            advice=advice,
            store=partial(_store, settings, advice),
            summary_reader=cluster,
            summary_jobs=CLUSTER_JOBS,
        ),
    )


def cluster_of(settings: Settings) -> "Cluster | None":
    """Return the cluster that the user named, if one: it is connected to when it is needed."""
    if not settings.scheduler:
        return None
    from stepscope.readers.cluster import Cluster  # noqa: PLC0415 (few need it)

    return Cluster(settings.scheduler)


def _store(settings: Settings, advice: "AdviceSettings | None") -> "Store":
    from stepscope.advice import AdviceSettings  # noqa: PLC0415 (it brings pandas)
    from stepscope.summaries.store import Store  # noqa: PLC0415

    return Store(settings.summaries, advice or AdviceSettings())
