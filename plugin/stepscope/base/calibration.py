"""Fraction of the claimed time that each kind of change saves, with its source.

A claim is a set of times. `low` and `high` are the minimum and maximum fractions of it that a fix
saves. A change that makes work 1.5 to 4 times as fast saves 1 - 1/1.5 to 1 - 1/4 of its time
(`speedup`). The source of a factor without a measurement says that it is an estimate.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Factor:
    """Minimum and maximum fractions (0 to 1) of the claimed time that a fix saves."""

    low: float
    high: float
    source: str
    """Origin of the two numbers: a measurement, a paper, a data sheet, or an estimate."""
    previous: tuple[float, float] | None = None
    """The two numbers before pairs of traces improved them; None if they never changed."""
    pairs: tuple[str, ...] = ()
    """Names of the pairs that it was fitted on (`family:fault`, in `sample_logs/record/pairs`)."""


def speedup(
    low: float,
    high: float,
    source: str,
    *,
    previous: tuple[float, float] | None = None,
    pairs: tuple[str, ...] = (),
) -> Factor:
    """Return the factor of work that becomes `low` to `high` times as fast (both at least 1).

    `previous` are the two earlier numbers, also as speedups.
    """
    shares = (1 - 1 / previous[0], 1 - 1 / previous[1]) if previous else None
    return Factor(1 - 1 / low, 1 - 1 / high, source, shares, pairs)


def either(*factors: Factor) -> Factor:
    """Return the factor of work of which it is unknown which of some factors applies."""
    low = min(factor.low for factor in factors)
    high = max(factor.high for factor in factors)
    return Factor(low, high, factors[0].source)


def at_most(factor: Factor, times: float) -> Factor:
    """Return the factor of work that can become at most `times` times as fast.

    Its lower bound is then at most half of its upper bound.
    """
    high = 1 - 1 / max(1.0, times)
    if high >= factor.high:
        return factor
    return Factor(min(factor.low, high / 2), high, factor.source)


def part_of(factor: Factor, share: float) -> Factor:
    """Return the factor if only a fraction (0 to 1) of the claimed time can be saved."""
    return Factor(factor.low * share, factor.high * share, factor.source)


EXPOSED_TIME = Factor(
    0.75,
    1.0,
    "torch-tb-profiler's sample runs with 0 and 4 DataLoader workers: they saved 0.84 and 0.77 of "
    "the exposed loading",
)
EXPOSED_TIME_WITHOUT_DEVICE = Factor(
    0.2,
    1.0,
    "traces of three jobs, on two cores: workers saved 0.52 of the exposed loading in "
    "sample_logs/dataloader, 0.88 in sample_logs/cifar_resnet18 and 0.92 in "
    "sample_logs/lightning_fetch; in some ten more pairs of the same jobs, which were not "
    "published, 0.46 to 0.56, 0.23 to 0.72 and 0.51 to 1.22. Workers take cores from computing, "
    "and a batch has to be received from them",
    (0.4, 1.0),
)
HANDOVERS = Factor(
    0.5,
    1.0,
    "an estimate: a handover takes about as long for a batch of twice the size, so that half of "
    "them remain; without workers none does",
)
MOVED_LOADING = Factor(
    1.0,
    1.0,
    "none: the trace is simulated with worker processes that make the batches; the slowdown of the "
    "loop by busy workers was fitted on pairs (`replay/loading.py`)",
    pairs=(
        "image_classifier:no_workers",
        "super_resolution:no_workers",
        "tabular:no_workers",
    ),
)
RESTARTED_WORKERS = Factor(
    1.0,
    1.0,
    "the workers are no longer restarted; that work is slower after a fork, and which calls are "
    "usual, was learned from a pair",
    pairs=("multi_task_vision:respawn",),
)
ALL_OF_IT = Factor(1.0, 1.0, "the work is no longer done")
COMPILING_AGAIN = Factor(
    1.0,
    1.0,
    "the work is no longer done. That it includes at most the calls around it follows from "
    "sample_logs/changing_shapes, where 1.002 of the compilation time was saved",
)
DONE_LESS_OFTEN = Factor(0.9, 1.0, "the work is done in one of ten steps, or in fewer")
CONVERTED_ONCE = Factor(
    0.8, 1.0, "an estimate: products read weights of a larger type, which takes more memory traffic"
)
SAMPLED_WORK = Factor(
    0.75,
    1.0,
    "of the confidence interval (95 %) of the sampled time. Of seventeen faults of scripts in "
    "sample_logs/record/zoo, recorded without stacks and with 3 to 49 samples on their lines, "
    "eleven were between the two ends, five within noise of them, and one above: without the lines "
    "the step took 0.7 to 1.9 times the sampled time less, once 3 times of three samples",
)
LOCATED_WORK = Factor(
    0.5,
    1.0,
    "an estimate: logging, files and metrics can be done in one of fifty steps; a loop in Python "
    "that becomes operators on whole tensors leaves a part of it",
)
UP_TO_ALL = Factor(0.0, 1.0, "nothing shows how much of it can be saved")
HALF_TO_ALL = Factor(0.5, 1.0, "an estimate: no pair of traces measures it yet")
LAYOUT_CONVERSIONS = Factor(
    0.7,
    1.0,
    "an estimate: the conversions of the first input and the last output remain, and those before "
    "operators without channels_last support",
)
AVOIDABLE_COPIES = Factor(
    0.3, 1.0, "an estimate: some copies are necessary, since a kernel requires a contiguous input"
)
CONVOLUTION_ENGINES = speedup(
    1.0,
    1.5,
    "an estimate: the fastest algorithm depends on shape and device, and may be the current one",
)
GATHERS = speedup(
    1.0, 2.0, "an estimate: a gather moves bytes, half of them if rows are in half precision"
)
POINTWISE_CHAINS = Factor(
    0.3,
    0.75,
    "an estimate, of all but the longest kernel of each chain: one fused kernel reads and writes "
    "once, but also reads all inputs and writes all results that are needed later",
)
POINTWISE_CHAINS_ON_CPU = Factor(
    0.75,
    1.0,
    "the traces in sample_logs/compiled: eager, all but the longest of each chain take 42.6 ms per "
    "step; compiled, the step is 49.2 ms shorter. Before, it was a fraction of whole chains, which "
    "took 40.2 ms by the earlier definition",
    (0.6, 1.0),
)
EXPOSED_COMMUNICATION = Factor(
    0.3,
    1.0,
    "an estimate: a part of it may be waiting for other ranks, and the last message of a backward "
    "pass cannot overlap with anything",
)
NEEDLESS_REDUCTIONS = Factor(
    0.75,
    1.0,
    "one job of two ranks on two cores: no_sync() saved 16.0 ms of a step, 0.89 of all that the "
    "rule claims; with one rank late, whose waiting is not claimed here, about 21 ms, 1.01 of it",
    (0.5, 1.0),
    ("ddp_accumulation:reduced_each_time", "ddp_accumulation:reduced_each_time+slow_rank"),
)
SMALL_MESSAGES = Factor(
    0.5,
    0.85,
    "one message instead of seventeen or twenty left 0.12 to 0.43 of the exposed time, without the "
    "transfer, in two jobs of two ranks: it is sent when the backward pass ends, so that nothing "
    "hides it, and ranks still wait for each other",
    (0.3, 1.0),
    (
        "ddp_images:small_buckets",
        "ddp_images:searched+small_buckets+buffers",
        "ddp_images:small_buckets+slow_rank",
    ),
)
PARALLEL_REDUCTION = Factor(
    0.0,
    0.5,
    "where the gradients are sent at the same time, an additional small all-reduce hardly takes "
    "time in a job of two ranks; in sample_logs/unused_parameters, both share two cores, "
    "and it took 0.5 to 0.8 of its time, within the noise of the steps",
    (0.3, 1.0),
    ("ddp_images:searched",),
)
SHARED_CORES = Factor(
    0.3,
    0.7,
    "two ranks on two cores: without the messages of small buckets, operators took less time in a "
    "backward pass, by 0.36 to 0.73 of the time for which messages had been sent meanwhile",
    pairs=(
        "ddp_images:small_buckets",
        "ddp_images:searched+small_buckets+buffers",
        "ddp_images:small_buckets+slow_rank",
    ),
)
"""Of the time in which the host computes while its other threads communicate on the same cores."""
SHARED_WORK = Factor(
    0.65,
    1.0,
    "replayed with the same work on both ranks, the step takes 23.1 ms less in sample_logs/ranks, "
    "where the same work saved 15.2 ms (0.66), and 17.4 and 5.4 ms less in two more jobs, where it "
    "saved 17.3 and 5.9 ms (0.99 and 1.09)",
    (0.75, 1.0),
    ("ddp_accumulation:slow_rank", "ddp_images:slow_rank"),
)
"""Of the replayed saving if ranks share the additional work of a late one."""
MOST_SHARED_WORK = 1.1
"""At most this multiple of it is saved, as measured in the same jobs."""
WAITING_FOR_A_LATE_RANK = Factor(
    0.3,
    1.0,
    "the traces in sample_logs/ranks: giving both ranks the same work saved 15.2 of 47.0 ms of "
    "waiting per step (0.32), since it slows down the rank that waited; if a rank is slow for "
    "other reasons, all of the waiting is saved",
    (0.5, 1.0),
)
TF32_PRODUCTS = speedup(
    2,
    6,
    "PyTorch's CUDA notes: 0.11 s become 0.016 s (6.9 times) for a product of 10,240² on an A100; "
    "small products, which memory limits, gain less",
)
SIXTEEN_BIT_FROM_FLOAT32 = speedup(
    1.5,
    4,
    "PyTorch's tuning guide: up to 3 times for whole models on Volta and later; peaks differ by 8 "
    "and more, memory traffic by 2",
)
SIXTEEN_BIT_FROM_TF32 = speedup(
    1.2, 2, "the devices' data sheets: twice the peak, and half of the memory traffic"
)
ALIGNED_PRODUCTS = speedup(
    1.1, 2, "an estimate from NVIDIA's guide on matrix products: no trace measures it yet"
)
ALIGNED_PRODUCTS_ON_OLDER_UNITS = speedup(
    1.1, 3, "an estimate: aligned operands also get the device's own generation of instructions"
)
FUSED_ATTENTION = speedup(
    1.5, 4, "FlashAttention's README: 2 to 4 times on an A100, both ways, at 128 to 4,096 tokens"
)
FUSED_LARGE_ATTENTION = speedup(
    2.0,
    16.0,
    "measured on an H200 (torch 2.11, bfloat16 by autocast, both ways): scores of 57 MiB 15 times, "
    "of 288 MiB 16 times, of 128 MiB in a model with convolutions 4 times; FlashAttention's "
    "README: 2 to 4 times on an A100",
)
FUSED_ATTENTION_CALLS = Factor(
    0.45,
    0.7,
    "measured in four models on the host of an H200: the fused operator and its backward function "
    "take 0.29 to 0.51 of the host's time in the operators that they replace",
)
FUSED_SHORT_ATTENTION = speedup(
    1.2, 2, "an estimate: below 512 tokens the matrix of scores largely stays in the cache"
)
FUSED_ATTENTION_IN_INFERENCE_ON_CPU = speedup(
    1.5,
    4.6,
    "measured on one thread of a Xeon, float32, scores of 2.6 to 134 MB: queries of 64 numbers 1.3 "
    "to 4.6 times, of 32 1.7 to 6.5, of 12 and 16 2.3 to 8 times",
)
FUSED_LARGE_ATTENTION_ON_CPU = speedup(
    2.2,
    4.2,
    "measured in the same way, forward and backward, scores of 34 and 134 MB: 2.6, 3.2 and 4.2",
)
FUSED_NARROW_ATTENTION_ON_CPU = speedup(
    1.5,
    2.8,
    "measured in the same way, scores of 2.6 to 17 MB: queries of 12 numbers 1.6 times, of 16 2.1 "
    "and 2.3, of 32 1.2 to 1.9 times; 3 times in a model that was recorded",
    pairs=("multi_task_vision:written_attention",),
)
FUSED_ATTENTION_ON_CPU = speedup(
    1.1,
    1.6,
    "measured in the same way, scores of 8 to 17 MB: queries of 64 numbers 1.2 and 1.4 times",
)
DOUBLE_PRECISION = speedup(
    2, 16, "data sheets: 1:2 on devices for computing centres, 1:32 and 1:64 on others; memory 1:2"
)
DOUBLE_PRECISION_SMALL_CONVOLUTIONS_ON_CPU = speedup(
    1.5,
    4,
    "measured on one thread of a Xeon, forward and backward, 3 to 512 channels of 8² to 224²: of "
    "convolutions that copy less than 4 MB 1.5 to 4 times",
    previous=(2.3, 14),
    pairs=("segmentation_unet:double", "super_resolution:double"),
)
DOUBLE_PRECISION_NARROW_CONVOLUTIONS_ON_CPU = speedup(
    3.5,
    13,
    "measured in the same way: to up to 16 channels 3.6 to 12.4 times (backward 2.8 to 12); in "
    "sample_logs/precision, on an EPYC, 8.5 and 13.2 times",
    previous=(2.3, 14),
    pairs=("segmentation_unet:double", "super_resolution:double"),
)
DOUBLE_PRECISION_WIDE_CONVOLUTIONS_ON_CPU = speedup(
    2.5,
    9,
    "measured in the same way: to more channels 2.4 to 6.7 times; on an EPYC 2.6 to 11 times in "
    "sample_logs/precision, and 3.8 to 18 times, 6.2 on average, in sample_logs/double_precision; "
    "a ResNet-18 of an HPC centre's tutorial: 5.88 s became 1.82 s (3.2 times)",
    previous=(2.3, 14),
    pairs=("segmentation_unet:double",),
)
DOUBLE_PRECISION_PRODUCTS_ON_CPU = speedup(
    1.7,
    3,
    "measured on one thread of an EPYC: products of 16 by 64 by 64 up to 1,024³ 1.8 to 2.3 times, "
    "64 products of 64 by 32 by 64 2.9 times; convolutions of one element, which are products, 1.8 "
    "to 2.7 times",
    previous=(2, 14),
)
DOUBLE_PRECISION_ON_CPU = speedup(
    1.5,
    4,
    "measured in the same way: pointwise operators 2 times, 4 and more at the edge of a cache; "
    "sums 2, pooling 1.1, batch normalisation 1.2 to 1.6, group normalisation 2.7. All of a model "
    "together 1.7 and 2.6 times, 2.1 in sample_logs/precision, 3 in sample_logs/double_precision",
    previous=(1.2, 6),
    pairs=("segmentation_unet:double", "super_resolution:double"),
)
NO_CASTS = Factor(0.3, 1.0, "an estimate: some conversions remain, at the model's borders")
FLOAT8_PRODUCTS = speedup(
    1.2,
    1.8,
    "torchao's float8 training: whole steps 1.25 times as fast on 8 H100, up to 1.5 times on 512; "
    "twice the peak, less the time for scaling and converting",
)
UPDATE_KERNELS = speedup(
    1.0,
    2.2,
    "the reads and writes of an update per parameter: SGD with momentum 11 in four kernels, 5 in a "
    "fused one; `foreach` alone saves launches, and no traffic",
)
FUSED_UPDATE = Factor(0.0, 0.5, "an estimate: the rest of a `foreach` update is short already")
BFLOAT16_ON_CPU = speedup(
    1.5,
    4.0,
    "PyTorch's blog: whole models 1.4 to 1.6 times with AVX512-BF16. Measured on one thread of a "
    "Xeon with amx_bf16, forward and backward with autocast's conversions, products of 134 million "
    "to 2 billion operations: 2.4 to 4 times",
)
BFLOAT16_IN_MATRIX_UNITS = speedup(
    3.0,
    10.0,
    "measured on one thread of a Xeon with amx_bf16, inference with weights in bfloat16, products "
    "of 134 million to 2 billion operations: 4.5, 7.4 and 13 times",
    previous=(1.5, 4.0),
)
SMALL_BFLOAT16_IN_MATRIX_UNITS = speedup(
    2.2,
    4.6,
    "measured in the same way, 16 to 76 million operations: 1.9 to 4.6 times, "
    "the larger ones 3.8 and more; 3.1 in a vision transformer",
    previous=(1.5, 4.0),
    pairs=("image_server:float32",),
)
BFLOAT16_POINTWISE_ON_CPU = Factor(
    0.15,
    0.5,
    "measured in the same way: 0.8 to 1.4 times as fast in a cache, and half of the bytes beyond; "
    "GELU 1.9 times in a vision transformer",
    pairs=("image_server:float32",),
)
BFLOAT16_IN_VECTORS_ON_CPU = speedup(
    1.7,
    3.0,
    "the instructions do twice the work. Measured on one thread of an EPYC with avx512_bf16, "
    "products of 64 to 8,192 rows, forward and backward, with autocast's conversions: 1.5 to 2.1 "
    "times; 2.5 times in sample_logs/mixed_precision",
    previous=(1.5, 4.0),
)
FUSED_SHORT_MOMENTS_ON_CPU = speedup(
    3.5,
    8.5,
    "measured on one thread of two processors, an EPYC and a Xeon, without the call itself: Adam "
    "and AdamW of 4 to 64 parameters of up to 4 k numbers 3.4 to 7 times as fast as the loop; a "
    "parameter takes the loop 17 µs and more, the fused update 3 µs. In sample_logs/optimizer, "
    "with recording, 7.9 times",
    previous=(2.4, 8.0),
    pairs=("adversarial_images:one_by_one", "batchnorm_resnet:one_by_one", "tabular:one_by_one"),
)
FUSED_MOMENTS_ON_CPU = speedup(
    2.3,
    4.0,
    "measured in the same way: 2.3 to 4 times with 16 k and 64 k numbers a parameter; the loop "
    "reads and writes 18 to 20 numbers for one of a parameter, the fused update 7",
    previous=(2.4, 8.0),
    pairs=("adversarial_images:one_by_one", "tabular:one_by_one"),
)
FUSED_LONG_MOMENTS_ON_CPU = speedup(
    2.3,
    7.0,
    "measured in the same way: 2.3 to 7 times from 256 k numbers a parameter on, more where the "
    "loop's two temporary results get fresh memory each time",
    previous=(2.4, 8.0),
    pairs=("ddp_accumulation:one_by_one",),
)
FUSED_MOMENT_LISTS_ON_CPU = speedup(
    2.5,
    7.0,
    "measured in the same way: 2.5 to 5 times as fast as `foreach`, for all sizes; 6.5 times in "
    "sample_logs/optimizer",
    previous=(2.4, 8.0),
)
FUSED_SHORT_ADAGRAD_ON_CPU = speedup(
    2.5,
    4.6,
    "measured in the same way: Adagrad of parameters of up to 4 k numbers",
    previous=(2.0, 5.6),
)
FUSED_ADAGRAD_ON_CPU = speedup(
    1.65,
    2.7,
    "measured in the same way: 16 k and 64 k numbers a parameter",
    previous=(2.0, 5.6),
)
FUSED_LONG_ADAGRAD_ON_CPU = speedup(
    2.2,
    6.0,
    "measured in the same way: from 256 k numbers a parameter on",
    previous=(2.0, 5.6),
)
FUSED_ADAGRAD_LISTS_ON_CPU = speedup(
    2.6,
    5.0,
    "measured in the same way: as fast as `foreach`, for all sizes",
    previous=(2.0, 5.6),
)
FUSED_SHORT_MOMENTUM_ON_CPU = speedup(
    2.0,
    5.0,
    "measured in the same way: SGD with momentum, up to 4 k numbers a parameter",
    previous=(1.6, 4.0),
)
FUSED_MOMENTUM_ON_CPU = speedup(
    1.1,
    1.9,
    "measured in the same way: 16 k and 64 k numbers a parameter; without momentum 0.7 to 1.3",
    previous=(1.1, 2.0),
)
FUSED_LONG_MOMENTUM_ON_CPU = speedup(
    1.25,
    1.9,
    "measured in the same way: from 256 k numbers a parameter on, where memory limits both: 8 "
    "numbers for one of a parameter, and 5",
    previous=(1.1, 2.0),
)
FUSED_MOMENTUM_LISTS_ON_CPU = speedup(
    1.6,
    3.1,
    "measured in the same way: as fast as `foreach`, for all sizes",
    previous=(1.6, 4.0),
)
ZEROING_ON_CPU = Factor(
    0.3,
    0.95,
    "measured on one thread of a Xeon: gradients of 256 and 1,024 numbers save 0.3 of their fills, "
    "of 4 k 0.38, of 16 k 0.57 (0.7 on an EPYC), of 64 k 0.78, and 0.9 to 0.96 from 256 k on",
    (0.0, 0.7),
    pairs=("variational_autoencoder:zero_fill",),
)
ADDING_TO_ZEROS_ON_CPU = Factor(
    0.8,
    1.0,
    "measured in the same way: a backward pass that finds no gradients takes 0.2 to 1.3 times the "
    "fills' time less, which is about the time of its additions",
    pairs=("variational_autoencoder:zero_fill",),
)
RECORDING_GRADIENTS = Factor(
    0.4,
    1.0,
    "of 3 µs per operator, and 0.4 µs per page of its result, which is kept. Measured on one "
    "thread of a Xeon: 1.1 to 2.6 µs per operator in models that keep little (74 and 795 kB); "
    "0.1 to 0.4 µs per page of results of 16 to 256 kB that get no memory of one just freed, and "
    "1 µs and more in models that keep 2 to 7 MB",
    pairs=("diffusion_sampler:gradients", "image_server:gradients"),
)
CLIPPING_ON_CPU = Factor(
    0.05,
    0.35,
    "measured on one thread of an EPYC: with `foreach` 7 to 36 % less (50 gradients of 1 MB; 50 of "
    "16 kB)",
)
FEWER_LAUNCHES = Factor(
    0.5,
    1.0,
    "an estimate: a graph's replay leaves gaps of about 1 µs, torch.compile alone launches about "
    "half as many kernels",
)
FUSED_LAUNCHES = Factor(
    0.25, 1.0, "an estimate: chains of pointwise kernels become one kernel, others stay"
)
FUSED_SHORT_KERNELS = speedup(
    1.1, 2.0, "an estimate: fused kernels read and write once, separate kernels once each"
)
ROUND_TRIP_COPIES = Factor(
    0.75,
    1.0,
    "an estimate: the device has to do the host's work between the copies; in "
    "sample_logs/synthetic_host_device_pingpong 0.94 of their time was saved, besides all of the "
    "idle time",
)
GARBAGE_COLLECTION = Factor(
    0.75,
    1.0,
    "an estimate: less frequent collections take longer; an unpublished trace on a CPU saved 162 "
    "of 162 ms without `gc.collect()` in each step",
)
LARGER_BATCH = Factor(
    0.5,
    1.0,
    "n times the batch pays a step's launches once instead of n times: twice the batch saves half "
    "of the time lost to them, and no batch more than all",
)
FULLER_KERNELS = Factor(
    0.5,
    1.0,
    "a kernel with blocks for a fraction of the multiprocessors takes as long until all have one: "
    "twice the batch saves half of the time in which they are idle, and no batch more than all",
)
LARGER_BATCH_ON_CPU = Factor(
    0.55,
    1.0,
    "n times the batch pays a step's calls and updates once instead of n times: four times the "
    "batch saves three quarters of them, and no batch more than all. Models and servers that ran "
    "with 4 to 64 samples on one thread of a Xeon saved 0.57 to 0.99 of the claimed time per "
    "sample with four times the batch, and 0.66 to 1.2 with eight times. 16 times the batch saved "
    "1.1 of it in sample_logs/batch_size, and 8 times 1.15 in sample_logs/cifar_resnet18, where "
    "operators take longer to prepare",
    (0.2, 1.0),
    pairs=("object_detector:tiny_batch",),
)
LOOP_OF_SLICES = Factor(
    0.75,
    1.0,
    "of the time from the second iteration on: the first stands for the one call that remains. "
    "Measured on one thread of an EPYC without the profiler: of four loops over small tensors "
    "(matched boxes, metrics and counts per sample), one call for the whole tensor saved 0.62 "
    "(operators that compute for 3 µs) to 0.87; the lower bound omits what operators compute",
    pairs=(
        "multi_task_vision:read_one_by_one",
        "object_detector:assigned_in_loop",
        "object_detector:detections",
        "super_resolution:read_one_by_one",
    ),
)
CELLS_MEASURED = (
    "measured on one thread of a Xeon without the profiler, forward and backward over 16 to 100 "
    "time steps: "
)
SMALL_LSTM_CELLS_ON_CPU = speedup(
    3.0,
    8.0,
    f"{CELLS_MEASURED}nn.LSTM is 3.5 to 8.5 times as fast as its cell where a product has up to "
    "0.5 M multiplications",
)
LSTM_CELLS_ON_CPU = speedup(1.6, 3.0, f"{CELLS_MEASURED}2.0 of products of 2 M and of 8 M")
LARGE_LSTM_CELLS_ON_CPU = speedup(
    1.1, 1.6, f"{CELLS_MEASURED}1.14 and 1.16 of products of 34 M and 67 M, forward alone 1.4"
)
GRU_CELLS_ON_CPU = speedup(
    1.08,
    2.0,
    f"{CELLS_MEASURED}nn.GRU is 1.08 to 1.36 times as fast as its cell, forward alone 1.14 to 2.2",
)
SMALL_RNN_CELLS_ON_CPU = speedup(
    1.4,
    2.9,
    f"{CELLS_MEASURED}nn.RNN is 1.56 to 1.85 times as fast as its cell where a product has up to "
    "0.13 M multiplications, forward alone 1.9 to 3.0",
)
LARGE_RNN_CELLS_ON_CPU = speedup(
    1.1, 1.5, f"{CELLS_MEASURED}1.10 to 1.25 of larger products, forward alone 1.2 to 1.5"
)
ROWS_PER_SAMPLE_ON_CPU = Factor(
    0.9,
    1.0,
    "measured on one thread of a Xeon without the profiler: of three networks of linear layers "
    "(64 to 1,024 wide, 16 to 48 samples) one call for all samples saves 0.96 of all calls but one "
    "and more, forward alone and with the backward pass",
)
SHORT_LAYERS_PER_SAMPLE_ON_CPU = Factor(
    0.6,
    1.0,
    "measured in the same way: of convolutions that take 0.1 to 0.3 ms for one sample 0.61 to 1.0 "
    "(a decoder, three small classifiers)",
)
LONG_LAYERS_PER_SAMPLE_ON_CPU = Factor(
    0.2,
    0.6,
    "measured in the same way: 0.34 to 0.41 of convolutions that take 0.8 ms for one sample, 0.19 "
    "to 0.29 of those that take 1.7 ms",
)
COPIED_AND_AVERAGED_ON_CPU = Factor(
    0.6,
    0.95,
    "an estimate: copies of both states, temporary results and a copy back go through memory some "
    "13 times, torch._foreach_lerp_ 3 times",
)
IN_FEW_STEPS = Factor(0.9, 1.0, "an assumption: it is done in one of ten steps, or fewer")
KEPT_ACTIVATIONS = Factor(
    0.8,
    1.0,
    "an estimate: activations that stay in memory leave the caches, and take fresh memory",
)
SPARSE_GRADIENTS = Factor(
    0.8,
    1.0,
    "an estimate: the rows that a batch reads are a twentieth of the table at most; adding up "
    "their gradients takes some operators of its own",
)
PENALTY_BY_THE_OPTIMIZER = Factor(
    0.75,
    1.0,
    "an estimate: the update reads each weight anyway; a gradient that only the penalty gave stays "
    "without it",
)
AVERAGED_SHORT_PARAMETERS_ON_CPU = Factor(
    0.3,
    0.95,
    "measured on one thread of a Xeon without the profiler, 60 parameters of 64 and 1,024 values: "
    "torch._foreach_lerp_ saves 0.56 to 0.61 of lerp_ on each, 0.86 of mul_ and add_, and 0.91 to "
    "0.94 of forms with temporary results; in a denoiser some 0.35 of such a form",
    (0.55, 0.95),
    pairs=("diffusion_denoiser:averaged_one_by_one",),
)
AVERAGED_LONG_PARAMETERS_ON_CPU = Factor(
    0.0,
    0.7,
    "measured in the same way: of 8 k to 512 k values 0 to 0.23 of lerp_ on each, 0.26 to 0.44 of "
    "mul_ and add_, and 0.53 to 0.73 of forms with temporary results",
)
CONSTANTS_IN_THE_STEP = Factor(
    0.5,
    1.0,
    "of the recorded time of the chains. Without the profiler the step got shorter by half of it "
    "(distances of pixels in a U-Net) and two thirds of it (a table of waves in a denoiser)",
    pairs=("diffusion_denoiser:schedule", "segmentation_unet:pixel_weights"),
)
CHECKS_FOR_NAN_ON_CPU = Factor(
    0.55,
    1.0,
    "recording takes up to 45 % of the time of short operators. Measured on one thread of an EPYC "
    "without the profiler: in four models anomaly detection cost 1.1 to 1.2 times the remainder "
    "and the recorded stacks, since it also displaces the program's data from caches",
    pairs=("batchnorm_resnet:anomaly",),
)
CPU_TO_DEVICE = Factor(
    0.0,
    0.73,
    "an estimate: in a public tutorial an epoch of ResNet-18 on CIFAR-10 took 78 s on the CPU "
    "and 21 s on a GPU, including all other work; a small model may save nothing",
)
LONG_CALLS_TO_DEVICE = Factor(
    0.5,
    0.73,
    "an estimate: the same tutorial; a device computes convolutions and products that take a "
    "processor 1 ms and more at least twice as fast, and their launches are a hundredth of that",
)
NUMPY_TO_TENSORS = Factor(
    0.5,
    1.0,
    "the traces in sample_logs/masking: on the CPU, doing the same in torch saved 0.51 of the time "
    "without operators",
)
NUMPY_TO_DEVICE = Factor(
    0.75,
    1.0,
    "an estimate: on a device the same functions took less than a hundredth of their time in a "
    "public tutorial; in sample_logs/synthetic_host_stall all of it was saved",
)
UNSEEN_ARRAYS = Factor(
    0.4,
    1.0,
    "the traces in sample_logs/masking: doing the same in torch saved 0.45 of the time without "
    "operators, recorded without stacks. Resizing images in NumPy took 0.61 ms on one thread of an "
    "EPYC, and 0.14 in torch (0.77)",
)
UNSEEN_PYTHON = Factor(
    0.0,
    1.0,
    "an estimate: without stacks, the work there and whether it can be avoided are unknown",
)
TUNED_PRODUCTS_SHARE = 0.75
"""Minimum fraction of the roofline that tuned products reach: the lower end of TraceLens' band."""


def up_to_roofline(reached: float) -> Factor:
    """Return the factor of products that reach a fraction of the roofline (0 to 1)."""
    return Factor(
        0.0,
        max(0.0, 1 - reached / TUNED_PRODUCTS_SHARE),
        "TraceLens: tuned products reach 75 to 100 % of the roofline; only a trial shows whether "
        "these shapes do",
    )


COMPUTED_ONCE = Factor(
    0.6, 1.0, "an estimate: the first result has to be kept, and its backward pass may remain"
)
GRADIENTS_LEFT_OUT = Factor(
    0.6, 1.0, "an estimate: the products go, the gradients of their inputs remain"
)
SPARSE_PRODUCTS = Factor(
    0.5, 0.95, "an estimate: products by index do the work of the elements that are not zero"
)
SHORTER_BATCHES = Factor(
    0.6, 1.0, "an estimate: most operators are proportional to the length, attention to its square"
)
LOOP_OF_OPERATORS = Factor(
    0.5, 0.95, "an estimate: one call per operator remains, and part of the work in it"
)
MORE_THREADS = Factor(
    0.35, 1.0, "an estimate: operators divide their work unevenly, and memory is shared"
)
FEWER_THREADS = Factor(
    0.0, 0.6, "an estimate: how long threads wait depends on the system's scheduler"
)
SCORES_LEFT_OUT = Factor(
    0.7, 1.0, "an estimate: selecting the positions copies their features and gradients"
)
CACHED_KEYS = Factor(
    0.6, 1.0, "an estimate: attention to earlier positions and the cache's copies remain"
)
GROWN_TENSORS = Factor(
    0.9,
    1.0,
    "a pair: without the concatenation of a key-value cache, 28.6 ms of each token were saved on "
    "an H200 (sample_logs/record/zoo_gpu/batch_generate.py), of 29.4 ms that its kernels took; the "
    "new part is still written",
)
BACKWARD_LEFT_OUT = Factor(
    0.7, 1.0, "an estimate: the forward pass keeps nothing for it either, which is not claimed"
)
ONE_BACKWARD = Factor(
    0.7, 1.0, "an estimate: the gradients of the losses are added where their graphs meet"
)
LARGE_BROADCAST_PRODUCTS_ON_CPU = Factor(
    0.8,
    1.0,
    "measured on one thread of a Xeon without the profiler, forward alone and with the backward "
    "pass: of 4.2 M and 8.4 M elements, products, cosine similarities and Euclidean distances of "
    "all pairs save 0.97 to 0.999 of the time as matrix products or torch.cdist, sums of absolute "
    "differences 0.82 to 0.97",
)
BROADCAST_PRODUCTS_ON_CPU = Factor(
    0.4,
    0.96,
    "measured in the same way, of 164 k and 262 k elements, which the caches hold: 0.56 to 0.96, "
    "sums of absolute differences 0.43 to 0.59",
)
BROADCAST_PRODUCTS = Factor(
    0.6,
    0.97,
    "an estimate, not measured in pairs: a product reads both operands and writes the result, not "
    "a tensor that is as many times as large as a row is wide",
)
