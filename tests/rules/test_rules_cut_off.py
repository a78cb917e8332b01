"""A file that was cut off before its device events: nobody may say that the device did nothing."""

import json
from pathlib import Path

import tracebuild
from loading import trace_at
from stepscope.advice import rule_outcomes
from stepscope.rules.no_gpu_work import RULE


def test_a_file_cut_off_before_its_device_events_cannot_tell(tmp_path: Path) -> None:
    rows = [["cpu_op", "aten::linear", 10 * number, 5] for number in range(50)]
    metadata = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}
    text = json.dumps(tracebuild.document(rows=rows, metadata=metadata))
    path = tmp_path / "worker0.pt.trace.json"
    path.write_text(text[: len(text) // 2], encoding="utf-8")
    [outcome] = rule_outcomes(trace_at(path), [RULE])
    assert outcome.status == "cannot-tell"
    assert outcome.reason == "the file was cut off before any device event"
    path.write_text(text, encoding="utf-8")
    [outcome] = rule_outcomes(trace_at(path), [RULE])
    assert outcome.status == "found"
