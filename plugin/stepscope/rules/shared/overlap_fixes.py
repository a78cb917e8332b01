"""What hides communication, by who communicates: the fix of `exposed-communication`."""

from collections.abc import Callable

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
from stepscope.rules.shared import collective_costs, exchange_fixes
from stepscope.rules.shared.collective_costs import Advice

FEW_BUCKETS = 2
MUCH_BYTES = 8 * 2**20
"""Gradients of less fill no bucket, and there is nothing to cut."""
DIRECT = frozenset({"custom", "symm_mem"})


def advice(trace: Trace, worst: pd.DataFrame, passes: int) -> Advice:
    """Return what hides the costliest collectives: rows of one kind, library and group.

    `passes` is how many backward passes they are of.
    """
    kind, backend = str(worst["kind"].iloc[0]), str(worst["backend"].iloc[0])
    if backend in HOST_BACKENDS and main_device(trace) is not None:
        return _through_the_host(trace, backend)
    if kind in BY_KIND:
        return BY_KIND[kind](trace)
    return _by_wrapper(trace, worst, passes)


def _by_wrapper(trace: Trace, worst: pd.DataFrame, passes: int) -> Advice:
    wrapper, role = collective_costs.wrapper(trace), _role(trace, worst)
    is_split = role == "TP" or str(worst["backend"].iloc[0]) in DIRECT
    if is_split or not (wrapper or is_training(trace)):
        return _tensor_parallel() if is_training(trace) else _serving()
    if wrapper.startswith("FSDP") or "FSDP" in role:
        return _sharded(wrapper)
    if wrapper == "DDP" and worst["kind"].iloc[0] == "all_reduce":
        return _ddp(trace, worst, passes)
    return _by_hand(worst)


def _role(trace: Trace, worst: pd.DataFrame) -> str:
    """Return what the process group seems to be for; "" where nothing tells."""
    try:
        groups = process_groups(trace)
    except MissingDataError:
        return ""
    mine = groups[groups["group"] == worst["group"].iloc[0]]
    role = mine["role"].iloc[0] if len(mine) else None
    is_guess = len(mine) and mine["role_confidence"].iloc[0] == "low"
    return "" if role is None or is_guess else str(role)


def _about(worst: pd.DataFrame) -> str:
    """Say in a comment what it is about: `# all_reduce in default_pg (8 ranks): 5 of 31.5 MB`."""
    group = collective_costs.group_name(worst)
    sent = collective_costs.message_size(worst)
    words = f"# {worst['kind'].iloc[0]}{f' in {group}' if group else ''}"
    return f"{words}, messages of {sent}" if sent else words


def _ddp(trace: Trace, worst: pd.DataFrame, passes: int) -> Advice:
    total_bytes = float(worst["message_bytes"].sum()) / max(1, passes)
    is_known = bool(worst["message_bytes"].notna().all())
    count = len(worst) / max(1, passes)
    if is_known and total_bytes < MUCH_BYTES and count <= FEW_BUCKETS:
        return _little_to_send(worst, total_bytes)
    said = recorded_settings(trace).distributed
    graph = "" if said.static_graph else ", static_graph=True"
    now = f"; now {said.bucket_cap_mb:.3g} ({RECORDED})" if said.bucket_cap_mb is not None else ""
    setting = f"bucket_cap_mb=50{graph})  # try 25 to 100{now}"
    if is_known and count <= FEW_BUCKETS:
        cap = max(1, round(total_bytes / 4 / 2**20))
        setting = f"bucket_cap_mb={cap}{graph})  # smaller ones begin earlier{now}"
    fix = Fix(
        "Begin to reduce gradients earlier, and send less.",
        f"{_about(worst)}\n"
        f"model = DDP(model, {setting}\n"
        "# half the bytes, where the model bears it:\n"
        "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
        "model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "The last bucket of a backward pass has nothing left to hide behind: a larger batch on "
            "each rank, or accumulation with no_sync(), makes it weigh less.",
            "The hook rounds gradients to bfloat16"
            f"{'; static_graph=True asks for the same graph in every step' if graph else ''}.",
        ),
    )
    return "DDP", fix, "flag", "numerics"


def _little_to_send(worst: pd.DataFrame, total_bytes: float) -> Advice:
    fix = Fix(
        "Compute more between two reductions: a larger batch, or accumulated gradients.",
        f"{_about(worst)}\n"
        f"# {size(total_bytes)} of gradients are sent at once, when the backward pass ends\n"
        "loader = DataLoader(dataset, batch_size=2 * batch_size)\n"
        "# or, where memory is short, in all but the last of several passes:\n"
        "with model.no_sync():\n"
        "    loss_of(model(batch)).backward()",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "A larger batch asks for another learning rate.",
        ),
    )
    return "DDP", fix, "flag", "behaviour"


def _sharded(wrapper: str) -> Advice:
    if wrapper == "FSDP":
        code = (
            "model = FullyShardedDataParallel(\n"
            "    model, forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE,\n"
            "    sharding_strategy=ShardingStrategy.SHARD_GRAD_OP,  # gather once a step\n"
            ")"
        )
    else:
        code = (
            "for block, following in zip(blocks, blocks[1:]):\n"
            "    block.set_modules_to_forward_prefetch([following])\n"
            "fully_shard(model, reshard_after_forward=False)  # gather once a step"
        )
    fix = Fix(
        "Gather parameters earlier, and less often.",
        code,
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "Prefetched and kept parameters take memory: those of one more unit, or of all.",
        ),
    )
    return "FSDP", fix, "hour", "memory"


def _tensor_parallel() -> Advice:
    fix = Fix(
        "Cut collectives and matrix products into pieces that overlap.",
        "from torch.distributed._symmetric_memory import enable_symm_mem_for_group\n"
        "enable_symm_mem_for_group(mesh['tp'].get_group().group_name)\n"
        "torch._inductor.config._micro_pipeline_tp = True\n"
        "model = torch.compile(model)  # with SequenceParallel() for norms and dropouts",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "Asynchronous tensor parallelism is experimental in torch. Fewer ranks in a group, all "
            "on one machine, are the surer way.",
        ),
    )
    return "tensor parallelism", fix, "day", "none"


def _serving() -> Advice:
    fix = Fix(
        "Cut the model over fewer devices, or overlap two halves of a batch.",
        "# vLLM: half as many ranks in a group, twice as many replicas, where the model fits\n"
        "vllm serve MODEL --tensor-parallel-size 4 --data-parallel-size 2\n"
        "# SGLang\n"
        "python -m sglang.launch_server --model-path MODEL --tp 4 --dp 2 "
        "--enable-two-batch-overlap",
        language="shell",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "Each replica holds all weights: less memory is left for the cache. Latency of one "
            "request may rise while throughput does.",
        ),
    )
    return "serving", fix, "hour", "memory"


def _pipeline(_: Trace) -> Advice:
    fix = Fix(
        "Run more and smaller micro-batches, or interleave stages.",
        "schedule = ScheduleInterleaved1F1B(stages, n_microbatches=4 * pipeline_ranks)\n"
        "# from torch.distributed.pipelining",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "Time to receive is mostly waiting for the stage before.",
        ),
    )
    return "pipeline", fix, "hour", "none"


def _through_the_host(trace: Trace, backend: str) -> Advice:
    name = trace.dialect.terms.get("process_group", "<the device's library>")
    fix = Fix(
        f"Communicate between devices, not through the host with {backend}.",
        f'dist.init_process_group("{name}")',
        verify="The next recording holds collectives as kernels of the device.",
        caveats=(collective_costs.SINGLE_RANK,),
    )
    return backend, fix, "flag", "none"


def _barrier(_: Trace) -> Advice:
    fix = Fix(
        "Leave out the barrier: collectives wait for each other by themselves.",
        "# no dist.barrier() in the loop",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "A barrier around a file that one rank writes is needed.",
        ),
    )
    return "barrier", fix, "hour", "behaviour"


def _by_hand(worst: pd.DataFrame) -> Advice:
    fix = Fix(
        "Start collectives asynchronously, and wait for them where the result is needed.",
        f"{_about(worst)}\n"
        f"work = dist.{_function(worst)}(..., async_op=True)\n"
        "...                         # what does not need the result\n"
        "work.wait()",
        verify=collective_costs.VERIFY,
        caveats=(collective_costs.SINGLE_RANK,),
    )
    return "by hand", fix, "hour", "none"


def _function(worst: pd.DataFrame) -> str:
    kind = str(worst["kind"].iloc[0])
    tensors = {"all_gather": "all_gather_into_tensor", "reduce_scatter": "reduce_scatter_tensor"}
    return tensors.get(kind, kind)


BY_KIND: dict[str, Callable[[Trace], Advice]] = {
    "barrier": _barrier,
    **dict.fromkeys(("all_to_all", "all_to_allv"), exchange_fixes.advice),
    **dict.fromkeys(("send", "recv", "send_recv"), _pipeline),
}
"""Kinds that tell by themselves who communicates."""
ANY = Fix(
    "Begin to communicate earlier, and send less.",
    "# DDP: buckets that fill early, half the bytes\n"
    "model = DDP(model, bucket_cap_mb=25, static_graph=True)\n"
    "model.register_comm_hook(None, default_hooks.bf16_compress_hook)\n"
    "# fully sharded: gather ahead, keep what was gathered\n"
    "block.set_modules_to_forward_prefetch([following])\n"
    "fully_shard(model, reshard_after_forward=False)\n"
    "# by hand\n"
    "work = dist.all_reduce(tensor, async_op=True)\n"
    "work.wait()  # where the result is needed",
    verify=collective_costs.VERIFY,
    caveats=(collective_costs.SINGLE_RANK,),
)
"""Where nobody knows who communicates: the rule's page."""
