"""The scenarios of a GPU: each a fault and its fix, as schedules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import synthetic_kernels as names
import synthetic_language as language
import synthetic_vision as vision
from synthesis import Schedule
from synthesis.build import Action, alloc, host, item, op, python, steps, to_cpu, to_cuda
from synthetic_training import fetch, prefetch, prefetched, upload, work

STEPS = 6
WEIGHTS_BYTES = 410 << 20  # parameters, their gradients and the optimizer's state
# Time of day in the trace's own clock: as large as in real traces, so that its precision counts.
START_US = 3_913_512_345_678.901
WORKERS_US = 70.0  # time of `next()` when a worker has the batch ready


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One side of a scenario: its schedule and its description."""

    about: str
    body: Callable[[], list[Action]]
    before: Callable[[], list[Action]] = list
    last_step: Callable[[], list[Action]] | None = None
    record: Sequence[str] = ("shapes", "memory")

    def schedule(self, scenario: str, seed: int) -> Schedule:
        """Return the variant's schedule."""
        every = STEPS if self.last_step is None else STEPS - 1
        profiled = [steps(every, *self.body(), gap_us=12)]
        if self.last_step is not None:
            profiled.append(steps(STEPS - every, *self.last_step(), gap_us=12))
        return Schedule(
            actions=[alloc(WEIGHTS_BYTES, "weights"), *self.before(), *profiled],
            record=self.record,
            start_us=START_US,
            gap_us=0.9,
            around_us=0.25,
            jitter=0.03,
            seed=seed,
            first_step=12,
            scenario=scenario,
            about=self.about,
        )


# DataLoader


def loading(workers: int, us: float) -> list[Action]:
    """Return a step whose batch comes from a number of workers, after a time."""
    dims = vision.image_dims(128)
    begin = [fetch(workers, us, dims), *prefetched(dims, vision.image_bytes(128))]
    return vision.training_step(128, begin=begin)


# Copies


def pageable_upload() -> list[Action]:
    """Return a step that copies its batch from pageable memory."""
    dims = vision.image_dims(128)
    begin = [
        fetch(4, WORKERS_US, dims),
        *upload(dims, vision.image_bytes(128), pinned=False),
    ]
    return vision.training_step(128, begin=begin)


def prefetched_upload() -> list[Action]:
    """Return a step whose batch was copied during the previous step."""
    dims = vision.image_dims(128)
    begin = [fetch(4, WORKERS_US, dims), *prefetched(dims, vision.image_bytes(128))]
    return vision.training_step(128, begin=begin)


def first_batch(size: int = 128) -> list[Action]:
    """Return the first batch's copy, before the first step."""
    return prefetch(vision.image_dims(size), vision.image_bytes(size))


# Synchronisation


def language_begin() -> list[Action]:
    """Return the begin of a step on text: a small batch that loads quickly."""
    return [fetch(4, WORKERS_US, language.TOKENS), *upload(language.TOKENS, language.TOKEN_BYTES)]


def read_at_every_turn() -> list[Action]:
    """Return a step that reads values from the device throughout."""
    return language.training_step(
        begin=language_begin(),
        checks=language.is_finite_check(),
        norms=language.gradient_norm_logging(),
        end=[],
    )


def without_reads() -> list[Action]:
    """Return a step that reads no value from the device."""
    return language.training_step(
        begin=language_begin(), checks=[], norms=language.gradient_norms(), end=[]
    )


def read_once_at_the_end() -> list[Action]:
    """Return a step that reads one value, when all work is queued."""
    return language.training_step(
        begin=language_begin(), checks=[], norms=language.gradient_norms(), end=[item(4)]
    )


# Host and device in turn

FEATURES = [128, 256, 14, 14]
FEATURE_BYTES = 2 * 128 * 256 * 14 * 14


def masked_on_host() -> list[Action]:
    """Return a mask computed on the CPU, with copies in both directions."""
    shapes = {"dims": [FEATURES], "types": ["c10::BFloat16"]}
    return [
        to_cpu(FEATURE_BYTES, FEATURES, type="c10::BFloat16"),
        op("aten::topk", us=2900, **shapes),
        op("aten::masked_fill_", us=1400, **shapes),
        to_cuda(FEATURE_BYTES, FEATURES, type="c10::BFloat16"),
    ]


def masked_on_device() -> list[Action]:
    """Return the same mask computed on the GPU."""
    shapes = {"dims": [FEATURES], "types": ["c10::BFloat16"]}
    fill = work(names.elementwise("MaskedFillFunctor", 3), 28)
    return [
        op("aten::topk", work(names.ANY.replace("or_kernel", "topk_kernel"), 190), us=14, **shapes),
        op("aten::masked_fill_", fill, us=8, **shapes),
    ]


def masking(middle: Callable[[], list[Action]]) -> list[Action]:
    """Return a step with a mask in the middle of its forward pass."""
    dims = vision.image_dims(128)
    begin = [fetch(4, WORKERS_US, dims), *prefetched(dims, vision.image_bytes(128))]
    return vision.training_step(128, begin=begin, middle=middle())


# Batch size


def batch_of(size: int) -> list[Action]:
    """Return a step on a number of images."""
    dims = vision.image_dims(size)
    begin = [fetch(4, WORKERS_US, dims), *prefetched(dims, vision.image_bytes(size))]
    optimizer_us = 18 if size <= 8 else 140
    return vision.training_step(size, begin=begin, blocks_a_stage=11, optimizer_us=optimizer_us)


# A stall of the host


def training_with_frames(augment: list[Action]) -> list[Action]:
    """Return a step inside its Python frames, with work on the targets."""
    dims = vision.image_dims(128)
    loader = python(
        "torch/utils/data/dataloader.py(732): __next__", fetch(4, WORKERS_US, dims), us=4
    )
    begin = [loader, *augment, *prefetched(dims, vision.image_bytes(128))]
    return [python("train.py(64): train_step", *vision.training_step(128, begin=begin), us=3)]


def augmented_by_numpy() -> list[Action]:
    """Return a step that waits for NumPy."""
    calls = [
        python("<built-in method standard_normal of numpy.random.Generator object>", us=9200),
        python("numpy/lib/_function_base_impl.py(1640): interp", us=4100),
        host(1800),
    ]
    return training_with_frames([python("train.py(41): jitter_targets", *calls, us=400)])


def augmented_on_device() -> list[Action]:
    """Return a step that does the same work on the GPU."""
    normal = op("aten::normal_", work(names.elementwise("NormalFunctor", 1), 60), us=9)
    lerp = op("aten::lerp", work(names.elementwise("LerpFunctor", 4), 45), us=8)
    return training_with_frames([python("train.py(41): jitter_targets", normal, lerp, us=6)])


SCENARIOS = {
    "dataloader": {
        "fault": Variant(
            about="The DataLoader has no workers: each batch of 128 images is decoded in the"
            " training process (24 ms) while the GPU has nothing to do.",
            body=lambda: loading(0, 24_000),
            before=first_batch,
        ),
        "fix": Variant(
            about="Four workers decode ahead: next() finds its batch ready (70 us).",
            body=lambda: loading(4, WORKERS_US),
            before=first_batch,
        ),
    },
    "pageable_copies": {
        "fault": Variant(
            about="Batches of 77 MB are copied to the GPU from pageable memory: the call blocks,"
            " and the GPU computes nothing meanwhile.",
            body=pageable_upload,
        ),
        "fix": Variant(
            about="The next batch is copied from pinned memory on a stream of its own, under the"
            " computation of this one.",
            body=prefetched_upload,
            before=first_batch,
        ),
    },
    "item_sync": {
        "fault": Variant(
            about="A language model asks `if isnan(hidden).any()` twice a block and logs"
            " `p.grad.norm().item()` for every weight: each answer drains the GPU's queue.",
            body=read_at_every_turn,
        ),
        "fix": Variant(
            about="The norms stay on the device and are read once, with .item() after the last"
            " step.",
            body=without_reads,
            last_step=read_once_at_the_end,
        ),
    },
    "host_device_pingpong": {
        "fault": Variant(
            about="In the middle of every forward a feature map of 13 MB goes to the CPU, is"
            " masked there and comes back.",
            body=lambda: masking(masked_on_host),
            before=first_batch,
        ),
        "fix": Variant(
            about="The mask is computed on the GPU.",
            body=lambda: masking(masked_on_device),
            before=first_batch,
        ),
    },
    "tiny_batch": {
        "fault": Variant(
            about="A batch of 2 images: over 300 kernels of about 5 us a step, launched slower"
            " than they run.",
            body=lambda: batch_of(2),
            before=lambda: first_batch(2),
        ),
        "fix": Variant(
            about="A batch of 128 images: the same kernels, long enough to hide their launches.",
            body=lambda: batch_of(128),
            before=first_batch,
        ),
    },
    "host_stall": {
        "fault": Variant(
            about="NumPy jitters the targets for 15 ms in every step, before anything is launched.",
            body=augmented_by_numpy,
            before=first_batch,
            record=("shapes", "memory", "stacks"),
        ),
        "fix": Variant(
            about="The targets are jittered on the GPU.",
            body=augmented_on_device,
            before=first_batch,
            record=("shapes", "memory", "stacks"),
        ),
    },
    "healthy": {
        "": Variant(
            about="Training that keeps the GPU busy: workers load, a side stream copies, nothing"
            " waits for a result.",
            body=prefetched_upload,
            before=first_batch,
        ),
    },
}
