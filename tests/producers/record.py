"""Record a few steps on the CPU and export them in every way that torch has; argument: a folder.

In a process of its own: torch's profiler has been seen to crash with stacks as deep as a test's.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def export(prof: Any, folder: Path) -> None:
    prof.export_chrome_trace(str(folder / "python.json"), use_python_export=True)
    prof.export_chrome_trace(str(folder / "kineto.json"))
    prof.events().export_chrome_trace(str(folder / "events.json"))


def main(folder: Path) -> None:
    model = torch.nn.Linear(4, 4)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2),
        on_trace_ready=lambda prof: export(prof, folder),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for _ in range(3):
            with record_function("[pl][profile]run_training_batch"):
                with record_function("[pl][module]torch.nn.modules.linear.Linear: layer"):
                    loss = model(torch.ones(2, 4)).sum()
                loss.backward()
            prof.step()


main(Path(sys.argv[1]))
