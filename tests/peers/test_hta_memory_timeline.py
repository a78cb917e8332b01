"""Memory by category beside HTA's, from a raw memory timeline that torch writes here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from peers import hta_peer
from stepscope.ingest import memory_files
from stepscope.model.frames.memory_timeline import timeline_of

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peer, pytest.mark.recording, pytest.mark.slow]
ASK = (
    "import json, sys; from hta.memory_analysis import MemoryAnalysis;"
    "print(json.dumps(MemoryAnalysis(sys.argv[1])._process_raw_events()))"
)


def _theirs(path: Path) -> tuple[list[int], list[list[int]]]:
    hta_peer.require()
    environment = {
        "PATH": os.defpath,
        "HOME": str(path.parent),
        "PYTHONPATH": os.pathsep.join(map(str, hta_peer.SEARCHED)),
    }
    command = [sys.executable, "-W", "ignore", "-c", ASK, str(path)]
    ran = subprocess.run(command, env=environment, capture_output=True, check=True)
    times, sizes = json.loads(ran.stdout.splitlines()[-1])
    return times, sizes


def test_sizes_by_category_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / "memory.raw.json.gz"
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    options: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with torch.profiler.profile(**options) as recording:
        for _ in range(2):
            model(torch.randn(8, 32)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    with pytest.warns(FutureWarning, match="export_memory_timeline"):
        recording.export_memory_timeline(str(path), device="cpu")
    document = memory_files.read(str(path))
    assert document is not None
    ours = timeline_of(document)
    times, sizes = _theirs(path)
    # it gives what was there before a point of its own, at the first time
    last = {time - min(times): size for time, size in zip(times, sizes, strict=True)}
    found = zip(ours.time_ns.tolist(), ours.sizes_bytes.tolist(), strict=True)
    assert dict(found) == last
    assert len(last) > 50
