"""What is won of the time that a finding claims: one factor a kind of change, with its source.

A claim is a set of times. `low` and `high` are the shares of it that a fix wins at least and at
most. Where a change makes work faster by 1.5 to 4 times, it wins 1 - 1/1.5 to 1 - 1/4 of its time
(`speedup`). A factor without a measurement behind it says that it is an estimate.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Factor:
    """Shares (0 to 1) of the claimed time that are won at least and at most."""

    low: float
    high: float
    source: str
    """Where the two numbers come from: a measurement, a paper, a data sheet, or an estimate."""
    was: tuple[float, float] | None = None
    """The two that stood here before pairs of recordings showed better; None: none did."""


def speedup(
    low: float, high: float, source: str, *, was: tuple[float, float] | None = None
) -> Factor:
    """Return the factor of work that becomes `low` to `high` times as fast (both at least 1).

    `was` are the two that stood here before, in times as well.
    """
    shares = (1 - 1 / was[0], 1 - 1 / was[1]) if was else None
    return Factor(low=1 - 1 / low, high=1 - 1 / high, source=source, was=shares)


EXPOSED_TIME = Factor(
    low=0.75,
    high=1.0,
    source=(
        "torch-tb-profiler's sample runs with 0 and 4 DataLoader workers: 0.84 and 0.77 of the "
        "exposed loading was won"
    ),
)
EXPOSED_TIME_WITHOUT_DEVICE = Factor(
    low=0.2,
    high=1.0,
    source=(
        "recordings of three jobs, on two cores: with workers, of the exposed loading 0.52 was won "
        "in sample_logs/dataloader, 0.88 in sample_logs/cifar_resnet18 and 0.92 in "
        "sample_logs/lightning_fetch; in some ten more pairs of the same jobs, not kept, 0.46 to "
        "0.56, 0.23 to 0.72 and 0.51 to 1.22. Workers take cores from computing, and a batch has "
        "to be taken over from them"
    ),
    was=(0.4, 1.0),
)
ALL_OF_IT = Factor(low=1.0, high=1.0, source="the work is not done any more")
COMPILING_AGAIN = Factor(
    low=1.0,
    high=1.0,
    source=(
        "the work is not done any more. That at most the calls around it count as well was drawn "
        "from sample_logs/changing_shapes, where 1.002 of the compiling was won"
    ),
)
UP_TO_ALL = Factor(low=0.0, high=1.0, source="nothing says how much of it can be won")
HALF_TO_ALL = Factor(low=0.5, high=1.0, source="an estimate: no pair of recordings measures it yet")
LAYOUT_CONVERSIONS = Factor(
    low=0.7,
    high=1.0,
    source=(
        "an estimate: of the conversions those of the first input and the last output remain, and "
        "those before operators that do not know channels_last"
    ),
)
AVOIDABLE_COPIES = Factor(
    low=0.3,
    high=1.0,
    source="an estimate: some copies are needed, where a kernel wants its input in one piece",
)
CONVOLUTION_ENGINES = speedup(
    1.0,
    1.5,
    "an estimate: which algorithm is fastest depends on shape and device, and the one taken may be",
)
GATHERS = speedup(
    1.0,
    2.0,
    "an estimate: a gather moves bytes, half of them where rows are stored in half precision",
)
POINTWISE_CHAINS = Factor(
    low=0.3,
    high=0.75,
    source=(
        "an estimate, of all but the longest kernel of each chain: one fused kernel reads and "
        "writes once, but also what each of them read and what is needed later"
    ),
)
POINTWISE_CHAINS_ON_CPU = Factor(
    low=0.75,
    high=1.0,
    source=(
        "the recordings in sample_logs/compiled: eager, all but the longest of each chain take "
        "42.6 ms of a step; compiled, the step is 49.2 ms shorter. Before, it was a share of whole "
        "chains, which were 40.2 ms as they were told apart then"
    ),
    was=(0.6, 1.0),
)
EXPOSED_COMMUNICATION = Factor(
    low=0.3,
    high=1.0,
    source=(
        "an estimate: a part of it may be waiting for other ranks, and the last message of a "
        "backward pass has nothing left to hide behind"
    ),
)
WAITING_FOR_A_LATE_RANK = Factor(
    low=0.3,
    high=1.0,
    source=(
        "the recordings in sample_logs/ranks: of 47.0 ms of waiting a step 15.2 were won (0.32) by "
        "giving both ranks the same work, since that makes the rank that waited slower; a rank "
        "that is slow of itself costs all of it"
    ),
    was=(0.5, 1.0),
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
    1.1, 2, "an estimate from NVIDIA's guide on matrix products: no recording measures it yet"
)
ALIGNED_PRODUCTS_ON_OLDER_UNITS = speedup(
    1.1,
    3,
    "an estimate: aligned operands get the instructions of the device's own generation as well",
)
FUSED_ATTENTION = speedup(
    1.5,
    4,
    "FlashAttention's README: 2 to 4 times on an A100, both ways, at 128 to 4,096 tokens",
)
FUSED_SHORT_ATTENTION = speedup(
    1.2, 2, "an estimate: below 512 tokens the matrix of scores largely stays in the cache"
)
DOUBLE_PRECISION = speedup(
    2,
    16,
    "data sheets: 1:2 on devices for computing centres, 1:32 and 1:64 on others; memory 1:2",
)
DOUBLE_PRECISION_PRODUCTS_ON_CPU = speedup(
    2,
    14,
    "a ResNet-18 of an HPC centre's tutorial: 5.88 s became 1.82 s (3.2 times); convolutions "
    "6.9 times in sample_logs/precision, and 7.4 times in sample_logs/double_precision (images of "
    "96²; of 64² 9.5 times, of 32² 13.5 times)",
    was=(2, 7),
)
DOUBLE_PRECISION_ON_CPU = speedup(
    1.2,
    6,
    "batch normalisation 1.4 (forward) and 2.5 times in sample_logs/precision; in "
    "sample_logs/double_precision it and ReLU 5.7 times, adding 6.9 times (what does not fit the "
    "cache), pooling 1.25 times",
    was=(1.3, 2.5),
)
NO_CASTS = Factor(
    low=0.3, high=1.0, source="an estimate: some conversions remain, at the model's borders"
)
FLOAT8_PRODUCTS = speedup(
    1.2,
    1.8,
    "torchao's float8 training: whole steps 1.25 times as fast on 8 H100, up to 1.5 times on 512; "
    "twice the peak, less what scaling and converting take",
)

UPDATE_KERNELS = speedup(
    1.0,
    2.2,
    "a count of what an update reads and writes of each parameter: SGD with momentum 11 times in "
    "four kernels, 5 times in a fused one; `foreach` alone saves launches, and no traffic",
)
FUSED_UPDATE = Factor(
    low=0.0, high=0.5, source="an estimate: what is left of a `foreach` update is short already"
)
BFLOAT16_ON_CPU = speedup(
    1.5,
    4.0,
    "measured on one thread of an EPYC with avx512_bf16: products of 256³ and more 1.9 to 4 times; "
    "PyTorch's blog: whole models 1.4 to 1.6 times; the pair in sample_logs/mixed_precision",
)
FUSED_MOMENTS_ON_CPU = speedup(
    1.6,
    8.0,
    "measured on one and two threads of an EPYC, 2 to 400 parameters of 256 to 9 M numbers: Adam "
    "and AdamW 1.7 to 9.7 times as fast in the fused update, Adagrad 1.8 to 3.4 times; `foreach` "
    "is no help there: with more than 16 k numbers it was slower than the loop. None of that was "
    "kept; in sample_logs/optimizer, which was at hand, the loop's update is 4.1 times as fast "
    "fused, that of `foreach` 3.1 times",
)
FUSED_MOMENTUM_ON_CPU = speedup(
    1.0,
    2.0,
    "measured likewise: SGD with momentum 1.1 to 2.0 times, and up to 5.4 times with hundreds of "
    "the smallest parameters; without momentum 0.7 to 1.3 times",
)
ZEROING_ON_CPU = Factor(
    low=0.0,
    high=0.7,
    source=(
        "measured on one thread of an EPYC: 200 gradients of 64 kB took 0.96 ms to fill and 0.28 "
        "to free; 50 of 1 MB took no longer to fill than to free"
    ),
)
CLIPPING_ON_CPU = Factor(
    low=0.05,
    high=0.35,
    source=(
        "measured on one thread of an EPYC: with `foreach` 7 to 36 % less (50 gradients of 1 MB; "
        "50 of 16 kB)"
    ),
)


def at_most(factor: Factor, times: float) -> Factor:
    """Return the factor where the work cannot become more than so many times as fast.

    What is won at least is then at most half of what is won at most.
    """
    high = 1 - 1 / max(1.0, times)
    if high >= factor.high:
        return factor
    return Factor(low=min(factor.low, high / 2), high=high, source=factor.source)


FEWER_LAUNCHES = Factor(
    low=0.5,
    high=1.0,
    source=(
        "an estimate: a graph's replay leaves gaps of about 1 µs, torch.compile alone launches "
        "about half as many kernels"
    ),
)
FUSED_LAUNCHES = Factor(
    low=0.25,
    high=1.0,
    source="an estimate: chains of pointwise kernels become one, others stay as they are",
)
FUSED_SHORT_KERNELS = speedup(
    1.1, 2.0, "an estimate: what is fused is read and written once, where each kernel did so"
)
ROUND_TRIP_COPIES = Factor(
    low=0.75,
    high=1.0,
    source=(
        "an estimate: the device has to do what the host did between the copies; in "
        "sample_logs/synthetic_host_device_pingpong 0.94 of their time was won, beside all of the "
        "idle time"
    ),
)
GARBAGE_COLLECTION = Factor(
    low=0.75,
    high=1.0,
    source=(
        "an estimate: what is collected less often takes longer; a recording on a CPU, not kept, "
        "won 162 of 162 ms without `gc.collect()` in each step"
    ),
)
LARGER_BATCH_ON_CPU = Factor(
    low=0.2,
    high=1.0,
    source=(
        "n times the batch pays a step's calls once instead of n times: twice the batch wins half "
        "of them, none more than all. What short operators compute grows with the batch, though: "
        "16 times the batch won 0.75 of the claimed time in sample_logs/batch_size, and 8 times "
        "0.73 in sample_logs/cifar_resnet18; at least, an estimate for operators that take nearly "
        "as long as the limit, which compute for most of that. Nothing else confirms it yet"
    ),
)
LOOP_OF_SLICES = Factor(
    low=0.75,
    high=1.0,
    source=(
        "a recording on a CPU, not kept: adding up the sums of 200 rows of 32 took 1.24 ms in a "
        "loop, and as one operator won 1.34 ms of the step; at least, an estimate for larger rows"
    ),
)


def part_of(factor: Factor, share: float) -> Factor:
    """Return the factor where no more than a share (0 to 1) of the claimed time can be won."""
    return Factor(low=factor.low * share, high=factor.high * share, source=factor.source)


CPU_TO_DEVICE = Factor(
    low=0.0,
    high=0.73,
    source=(
        "an estimate: in a public tutorial an epoch of ResNet-18 on CIFAR-10 took 78 s on the CPU "
        "and 21 s on a GPU, all else included; a small model may win nothing"
    ),
)
LONG_CALLS_TO_DEVICE = Factor(
    low=0.5,
    high=0.73,
    source=(
        "an estimate: the same tutorial; a device computes convolutions and products that take a "
        "processor 1 ms and more at least twice as fast, and their launches are a hundredth of that"
    ),
)
NUMPY_TO_TENSORS = Factor(
    low=0.5,
    high=1.0,
    source=(
        "the recordings in sample_logs/masking: on the CPU 0.51 of the time without operators was "
        "won by doing the same in torch; on a device nearly all (over 100 times as fast in a "
        "public tutorial)"
    ),
)
UNSEEN_PYTHON = Factor(
    low=0.0,
    high=1.0,
    source="an estimate: without stacks nothing tells what runs there, or whether it can go",
)
TUNED_PRODUCTS_SHARE = 0.75
"""Of the roofline: what tuned products reach at least, the lower end of TraceLens' band."""


def up_to_roofline(reached: float) -> Factor:
    """Return the factor of products that reach a share of the roofline (0 to 1)."""
    return Factor(
        low=0.0,
        high=max(0.0, 1 - reached / TUNED_PRODUCTS_SHARE),
        source=(
            "TraceLens: tuned products reach 75 to 100 % of the roofline; whether these shapes do "
            "is known only by trying"
        ),
    )
