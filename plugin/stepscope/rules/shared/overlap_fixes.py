"""Fixes of `exposed-communication`, by the origin of the communication."""

import re

import pandas as pd

from stepscope.analyses.communication.process_groups import process_groups
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Fix
from stepscope.base.formatting import size
from stepscope.model.frames.collective_names import HOST_BACKENDS
from stepscope.model.trace import Trace
from stepscope.rules.shared import collective_costs
from stepscope.rules.shared.collective_costs import Advice

FEW_BUCKETS = 2
MUCH_BYTES = 8 * 2**20
"""Gradients of fewer bytes fill no bucket, and there is nothing to split."""
DIRECT = frozenset({"custom", "symm_mem"})
EMBEDDINGS = re.compile(r"^fbgemm::\w*(?:embedding|pooled_embs|sparse)")
SPARSE_PIPELINE = re.compile(r"\bsparse_data_dist\b")
"""TorchRec's operators on tables of embeddings, and its pipeline's annotation of the next batch."""


def advice(trace: Trace, worst: pd.DataFrame, passes: int) -> Advice:
    """Return the fix for the costliest collectives: rows of one kind, library and group.

    `passes` is the number of backward passes that they belong to.
    """
    kind, backend = str(worst["kind"].iloc[0]), str(worst["backend"].iloc[0])
    if backend in HOST_BACKENDS and main_device(trace) is not None:
        return _between_devices(trace, backend)
    if kind in ("all_to_all", "all_to_allv"):
        return _exchange(trace)
    return BY_KIND.get(kind) or _by_wrapper(trace, worst, passes)


def _fix(summary: str, code: str, *caveats: str, language: str = "python") -> Fix:
    return Fix(
        summary,
        code,
        language=language,
        verify=collective_costs.VERIFY,
        caveats=(collective_costs.SINGLE_RANK, *caveats),
    )


def _by_wrapper(trace: Trace, worst: pd.DataFrame, passes: int) -> Advice:
    wrapper, role = collective_costs.wrapper(trace), _role(trace, worst)
    is_split = role == "TP" or str(worst["backend"].iloc[0]) in DIRECT
    if is_split or not (wrapper or is_training(trace)):
        return TENSOR_PARALLEL if is_training(trace) else SERVING
    if wrapper.startswith("FSDP") or "FSDP" in role:
        return _sharded(wrapper)
    if wrapper == "DDP" and worst["kind"].iloc[0] == "all_reduce":
        return _ddp(trace, worst, passes)
    return _asynchronous(worst)


def _role(trace: Trace, worst: pd.DataFrame) -> str:
    """Return the probable role of the process group; "" where it is unknown."""
    try:
        groups = process_groups(trace)
    except MissingDataError:
        return ""
    group = groups[groups["group"] == worst["group"].iloc[0]]
    role = group["role"].iloc[0] if len(group) else None
    is_guess = len(group) and group["role_confidence"].iloc[0] == "low"
    return "" if role is None or is_guess else str(role)


def _comment(worst: pd.DataFrame) -> str:
    """Return a comment: `# all_reduce in default_pg (8 ranks), messages of 31.5 MB`."""
    group = collective_costs.group_name(worst)
    sent = collective_costs.message_size(worst)
    text = f"# {worst['kind'].iloc[0]}{f' in {group}' if group else ''}"
    return f"{text}, messages of {sent}" if sent else text


def is_sent_at_once(trace: Trace, worst: pd.DataFrame, passes: int) -> bool:
    """Return whether DDP sends all gradients when the backward pass ends: they fill no bucket."""
    is_of_ddp = collective_costs.wrapper(trace) == "DDP" and worst["kind"].iloc[0] == "all_reduce"
    return is_of_ddp and _is_few(worst, passes) and _bytes(worst, passes) < MUCH_BYTES


def _is_few(worst: pd.DataFrame, passes: int) -> bool:
    has_sizes = bool(worst["message_bytes"].notna().all())
    return has_sizes and len(worst) / max(1, passes) <= FEW_BUCKETS


def _bytes(worst: pd.DataFrame, passes: int) -> float:
    return float(worst["message_bytes"].sum()) / max(1, passes)


def _ddp(trace: Trace, worst: pd.DataFrame, passes: int) -> Advice:
    total_bytes, is_few = _bytes(worst, passes), _is_few(worst, passes)
    if is_few and total_bytes < MUCH_BYTES:
        return _little_to_send(worst, total_bytes)
    settings = recorded_settings(trace).distributed
    graph = "" if settings.static_graph else ", static_graph=True"
    cap_mb = settings.bucket_cap_mb
    now = "" if cap_mb is None else f"; now {cap_mb:.3g} ({RECORDED})"
    setting = f"bucket_cap_mb=50{graph})  # try 25 to 100{now}"
    if is_few:
        smaller_mb = max(1, round(total_bytes / 4 / 2**20))
        setting = f"bucket_cap_mb={smaller_mb}{graph})  # smaller ones begin earlier{now}"
    fix = _fix(
        "Begin to reduce gradients earlier, and send less.",
        f"{_comment(worst)}\n"
        f"model = DDP(model, {setting}\n"
        "# half the bytes, where the model tolerates it:\n"
        "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
        "model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
        "Nothing is left to hide the last bucket of a backward pass: a larger batch on each rank, "
        "or accumulation with no_sync(), reduces its weight.",
        "The hook rounds gradients to bfloat16"
        f"{'; static_graph=True requires the same graph in every step' if graph else ''}.",
    )
    return "DDP", fix, "flag", "numerics"


def _little_to_send(worst: pd.DataFrame, total_bytes: float) -> Advice:
    fix = _fix(
        "Compute more between two reductions: a larger batch, or accumulated gradients.",
        f"{_comment(worst)}\n"
        f"# {size(total_bytes)} of gradients are sent at once, when the backward pass ends\n"
        "loader = DataLoader(dataset, batch_size=2 * batch_size)\n"
        "# or, where memory is short, in all but the last of several passes:\n"
        "with model.no_sync():\n"
        "    loss_of(model(batch)).backward()",
        "A larger batch needs another learning rate.",
    )
    return "DDP", fix, "flag", "behaviour"


def _sharded(wrapper: str) -> Advice:
    code = (
        "for block, following in zip(blocks, blocks[1:]):\n"
        "    block.set_modules_to_forward_prefetch([following])\n"
        "fully_shard(model, reshard_after_forward=False)  # gather once per step"
    )
    if wrapper == "FSDP":
        code = (
            "model = FullyShardedDataParallel(\n"
            "    model, forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE,\n"
            "    sharding_strategy=ShardingStrategy.SHARD_GRAD_OP,  # gather once per step\n"
            ")"
        )
    fix = _fix(
        "Gather parameters earlier, and less often.",
        code,
        "Gathered parameters take memory: those of one more unit, or of all.",
    )
    return "FSDP", fix, "hour", "memory"


def _between_devices(trace: Trace, backend: str) -> Advice:
    name = trace.dialect.terms.get("process_group", "<the device's library>")
    fix = Fix(
        f"Communicate between devices, not through the host with {backend}.",
        f'dist.init_process_group("{name}")',
        verify="The next trace contains collectives as kernels of the device.",
        caveats=(collective_costs.SINGLE_RANK,),
    )
    return backend, fix, "flag", "none"


def _asynchronous(worst: pd.DataFrame) -> Advice:
    kind = str(worst["kind"].iloc[0])
    tensors = {"all_gather": "all_gather_into_tensor", "reduce_scatter": "reduce_scatter_tensor"}
    fix = _fix(
        "Start collectives asynchronously, and wait for them where the result is needed.",
        f"{_comment(worst)}\n"
        f"work = dist.{tensors.get(kind, kind)}(..., async_op=True)\n"
        "...                         # work that does not need the result\n"
        "work.wait()",
    )
    return "by hand", fix, "hour", "none"


def _exchange(trace: Trace) -> Advice:
    """Return the fix for all-to-all exchanges: of embeddings, or of tokens between experts."""
    names = [str(name) for name in trace.host_calls["name"].cat.categories]
    if any(map(SPARSE_PIPELINE.search, names)):
        return FEWER_BYTES
    return EARLIER_EXCHANGE if any(map(EMBEDDINGS.search, names)) else EXPERTS


TENSOR_PARALLEL: Advice = (
    "tensor parallelism",
    _fix(
        "Split collectives and matrix products into pieces that overlap.",
        "from torch.distributed._symmetric_memory import enable_symm_mem_for_group\n"
        "enable_symm_mem_for_group(mesh['tp'].get_group().group_name)\n"
        "torch._inductor.config._micro_pipeline_tp = True\n"
        "model = torch.compile(model)  # with SequenceParallel() for norms and dropouts",
        "Asynchronous tensor parallelism is experimental in torch. Fewer ranks per group, all on "
        "one machine, are the safer choice.",
    ),
    "day",
    "none",
)
SERVING: Advice = (
    "serving",
    _fix(
        "Split the model over fewer devices, or overlap two halves of a batch.",
        "# vLLM: half as many ranks per group, twice as many replicas, where the model fits\n"
        "vllm serve MODEL --tensor-parallel-size 4 --data-parallel-size 2\n"
        "# SGLang\n"
        "python -m sglang.launch_server --model-path MODEL --tp 4 --dp 2 "
        "--enable-two-batch-overlap",
        "Each replica stores all weights: less memory is left for the cache. Latency of one "
        "request may rise while throughput does.",
        language="shell",
    ),
    "hour",
    "memory",
)
PIPELINE: Advice = (
    "pipeline",
    _fix(
        "Run more and smaller micro-batches, or interleave stages.",
        "schedule = ScheduleInterleaved1F1B(stages, n_microbatches=4 * pipeline_ranks)\n"
        "# from torch.distributed.pipelining",
        "Time to receive is mostly waiting for the previous stage.",
    ),
    "hour",
    "none",
)
BARRIER: Advice = (
    "barrier",
    _fix(
        "Remove the barrier: collectives wait for each other anyway.",
        "# no dist.barrier() in the loop",
        "A barrier around a file that one rank writes is needed.",
    ),
    "hour",
    "behaviour",
)
EXPERTS: Advice = (
    "all-to-all",
    _fix(
        "Exchange while something else computes.",
        "work = dist.all_to_all_single(received, tokens, async_op=True)\n"
        "shared = shared_expert(hidden)   # work that needs no exchange\n"
        "work.wait()",
        "An exchange waits for the rank with most to send: balance experts.",
    ),
    "day",
    "none",
)
EARLIER_EXCHANGE: Advice = (
    "embeddings",
    _fix(
        "Exchange the next batch's features while this batch computes.",
        "from torchrec.distributed.train_pipeline import TrainPipelineSparseDist\n"
        "pipeline = TrainPipelineSparseDist(model, optimizer, device)\n"
        "output = pipeline.progress(batches)",
        "An exchange waits for the rank with most to send: balance tables over ranks too.",
        "A second batch occupies the device's memory.",
    ),
    "day",
    "none",
)
FEWER_BYTES: Advice = (
    "embeddings",
    _fix(
        "Send embeddings in fewer bytes, and balance tables over ranks.",
        "from torchrec.distributed.fbgemm_qcomm_codec import (\n"
        "    CommType, QCommsConfig, get_qcomm_codecs_registry,\n"
        ")\n"
        "codecs = get_qcomm_codecs_registry(\n"
        "    QCommsConfig(forward_precision=CommType.FP16, backward_precision=CommType.BF16)\n"
        ")\n"
        "sharder = EmbeddingBagCollectionSharder(qcomm_codecs_registry=codecs)",
        "Embeddings and their gradients are rounded for the transfer.",
        "The pipeline that exchanges features one batch ahead runs already.",
    ),
    "hour",
    "numerics",
)
BY_KIND = {"barrier": BARRIER, "send": PIPELINE, "recv": PIPELINE, "send_recv": PIPELINE}
"""Kinds that determine the origin of the communication."""
ANY = _fix(
    "Begin to communicate earlier, and send less.",
    "# DDP: buckets that fill early, half the bytes\n"
    "model = DDP(model, bucket_cap_mb=25, static_graph=True)\n"
    "model.register_comm_hook(None, default_hooks.bf16_compress_hook)\n"
    "# fully sharded: gather ahead, and only once\n"
    "block.set_modules_to_forward_prefetch([following])\n"
    "fully_shard(model, reshard_after_forward=False)\n"
    "# by hand\n"
    "work = dist.all_reduce(tensor, async_op=True)\n"
    "work.wait()  # where the result is needed",
)
"""The fix for an unknown origin, on the rule's page."""
