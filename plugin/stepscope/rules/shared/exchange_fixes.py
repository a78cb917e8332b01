"""What hides exchanges of all with all: of embeddings, or of tokens between experts."""

import re

from stepscope.base.findings import Fix
from stepscope.model.trace import Trace
from stepscope.rules.shared import collective_costs
from stepscope.rules.shared.collective_costs import Advice

EMBEDDINGS = re.compile(r"^fbgemm::\w*(?:embedding|pooled_embs|sparse)")
SPARSE_PIPELINE = re.compile(r"\bsparse_data_dist\b")
"""TorchRec's operators on tables of embeddings, and what its pipeline writes of the next batch."""


def advice(trace: Trace) -> Advice:
    """Return what hides them, by what the recording shows of embeddings."""
    names = [str(name) for name in trace.host_calls["name"].cat.categories]
    if any(map(SPARSE_PIPELINE.search, names)):
        return "embeddings", _fewer_bytes(), "hour", "numerics"
    if any(map(EMBEDDINGS.search, names)):
        return "embeddings", _sparse_pipeline(), "day", "none"
    fix = Fix(
        "Exchange while something else computes.",
        "work = dist.all_to_all_single(received, tokens, async_op=True)\n"
        "shared = shared_expert(hidden)   # what needs no exchange\n"
        "work.wait()",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "An exchange waits for the rank with most to send: balance experts.",
        ),
    )
    return "all-to-all", fix, "day", "none"


def _sparse_pipeline() -> Fix:
    return Fix(
        "Exchange the next batch's features while this batch computes.",
        "from torchrec.distributed.train_pipeline import TrainPipelineSparseDist\n"
        "pipeline = TrainPipelineSparseDist(model, optimizer, device)\n"
        "output = pipeline.progress(batches)",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "An exchange waits for the rank with most to send: balance tables over ranks too.",
            "A second batch is held in the device's memory.",
        ),
    )


def _fewer_bytes() -> Fix:
    return Fix(
        "Send embeddings in fewer bytes, and balance tables over ranks.",
        "from torchrec.distributed.fbgemm_qcomm_codec import (\n"
        "    CommType, QCommsConfig, get_qcomm_codecs_registry,\n"
        ")\n"
        "codecs = get_qcomm_codecs_registry(\n"
        "    QCommsConfig(forward_precision=CommType.FP16, backward_precision=CommType.BF16)\n"
        ")\n"
        "sharder = EmbeddingBagCollectionSharder(qcomm_codecs_registry=codecs)",
        verify=collective_costs.VERIFY,
        caveats=(
            collective_costs.SINGLE_RANK,
            "Embeddings and their gradients are rounded on the way.",
            "The pipeline that exchanges features one batch ahead runs already.",
        ),
    )
