"""Where in the user's program collectives were asked for, with the findings about them."""

from typing import Any

import tracebuild
from loading import trace_of
from stepscope.advice import rule_outcomes
from stepscope.base.findings import SourceLine
from stepscope.rules.small_collectives import RULE

REDUCE = {
    "op": "nccl:all_reduce",
    "dims": [[1000]],
    "body": [{"kernel": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "us": 20, "stream": 20}],
}
LOOP = {"python": "train.py(12): reduce_gradients", "body": [{"repeat": 20, "body": [REDUCE]}]}
UPDATE = {"annotation": "Optimizer.step#SGD.step", "us": 20}


def lines(record: list[str]) -> tuple[SourceLine, ...]:
    actions: list[dict[str, Any]] = [{"steps": 4, "body": [LOOP, UPDATE, {"host": 780}]}]
    document = tracebuild.document(schedule={"record": record, "actions": actions})
    [outcome] = rule_outcomes(trace_of(document=document), [RULE])
    assert outcome.status == "found"
    return outcome.locations


def test_small_messages_name_the_line_that_sends_them() -> None:
    line = SourceLine(path="train.py", line=12, function="reduce_gradients")
    assert lines(["shapes", "stacks"]) == (line,)


def test_without_stacks_no_line_is_known() -> None:
    assert lines(["shapes"]) == ()
