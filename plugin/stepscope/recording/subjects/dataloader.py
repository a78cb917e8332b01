"""Settings of the live DataLoaders, those in use first."""

from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import fields, flag, whole

MOST_LOADERS = 16


def dataloaders(scene: Scene) -> list[dict[str, Any]] | None:
    """Return each DataLoader's settings; None if there are none.

    `is_in_use` means that an iterator of it is alive, i.e. a loop over it is in progress. At the
    end of a `with profile(…)` block, after the loop, there may be none.
    """
    loaders = [(loader, _is_in_use(loader, scene)) for loader in scene.dataloaders]
    loaders.sort(key=lambda pair: not pair[1])
    return [_settings(loader, is_in_use=used) for loader, used in loaders[:MOST_LOADERS]] or None


def _is_in_use(loader: Any, scene: Scene) -> bool:
    """Return whether an iterator has the loader's own sampler: it does not reference its loader."""
    index_sampler = getattr(loader, "_index_sampler", None)
    return index_sampler is not None and any(
        getattr(iterator, "_index_sampler", None) is index_sampler for iterator in scene.iterators
    )


def _settings(loader: Any, *, is_in_use: bool) -> dict[str, Any]:
    return fields(
        batch_size=lambda: _batch_size(loader),
        worker_count=lambda: whole(loader.num_workers),
        pin_memory=lambda: flag(loader.pin_memory),
        persistent_workers=lambda: flag(loader.persistent_workers),
        prefetch_factor=lambda: whole(loader.prefetch_factor),
        drop_last=lambda: flag(loader.drop_last),
        dataset_length=lambda: _dataset_length(loader.dataset),
        dataset=lambda: type(loader.dataset).__name__,
        sampler=lambda: type(_sampler(loader)).__name__,
        multiprocessing_context=lambda: _start_method(loader),
        is_in_use=lambda: is_in_use or None,
    )


def _batch_size(loader: Any) -> int | None:
    """Return the batch size; with a custom batch sampler, that sampler's."""
    if loader.batch_size is not None:
        return whole(loader.batch_size)
    return whole(getattr(loader.batch_sampler, "batch_size", None))


def _sampler(loader: Any) -> Any:
    """Return the sampler; with a batch sampler, `loader.sampler` is a dummy.

    accelerate wraps the batch sampler: its loaders, and therefore those of transformers, have no
    other sampler.
    """
    batches = loader.batch_sampler
    batches = getattr(batches, "batch_sampler", batches)
    return getattr(batches, "sampler", loader.sampler)


def _dataset_length(dataset: Any) -> int | None:
    """Return the number of samples; None for an iterable dataset."""
    from torch.utils.data import IterableDataset

    return None if isinstance(dataset, IterableDataset) else len(dataset)


def _start_method(loader: Any) -> str | None:
    """Return the start method of workers: fork, spawn or forkserver."""
    if not loader.num_workers:
        return None
    if loader.multiprocessing_context is not None:
        return str(loader.multiprocessing_context.get_start_method())
    import multiprocessing

    return multiprocessing.get_start_method(allow_none=True)


def batch(scene: Scene) -> dict[str, Any] | None:
    """Return the samples per step if passed: a step may contain several batches."""
    size = scene.given.batch_size
    return None if size is None else {"sample_count": size}
