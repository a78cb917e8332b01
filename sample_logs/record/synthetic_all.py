"""Write every synthetic sample log: `python sample_logs/record/synthetic_all.py [scenario ...]`.

These traces were not recorded on a GPU. `synthesis` generates them from the schedules of
`synthetic_scenarios`, and marks each under the key `stepscope`. The same code gives the same bytes.
"""

import argparse
from pathlib import Path
from typing import Any

from synthesis import synthesise, write
from synthetic_scenarios import SCENARIOS

SAMPLE_LOGS = Path(__file__).resolve().parent.parent
FIRST_STAMP_NS = 1767225600000000000  # 2026-01-01: the digits in a trace file's name
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")


def main() -> None:
    """Write the named scenarios, or all; print one line per trace."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenario", nargs="*", choices=[[], *SCENARIOS], help="default: all")
    parser.add_argument("--into", type=Path, default=SAMPLE_LOGS, help="default: sample_logs/")
    arguments = parser.parse_args()
    print("| run | mean step | GPU busy | trace |")
    print("|---|---|---|---|")
    for number, (scenario, variants) in enumerate(SCENARIOS.items()):
        if arguments.scenario and scenario not in arguments.scenario:
            continue
        for offset, (side, variant) in enumerate(variants.items()):
            folder = arguments.into / f"synthetic_{scenario}" / side
            stamp_ns = FIRST_STAMP_NS + number * 3_600_000_000_000 + offset * 60_000_000_000
            path = folder / f"worker0.{stamp_ns}.pt.trace.json.gz"
            document = synthesise(variant.schedule(scenario, seed=number))
            write(document, path)
            size_kb = path.stat().st_size / 1000
            run = folder.relative_to(arguments.into)
            print(f"| `{run}` | {summary(document)} | {size_kb:.0f} kB |")


def summary(document: dict[str, Any]) -> str:
    """Return the mean step and the device's busy fraction, from the first step to the last work."""
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    profiled = [
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["cat"] == "user_annotation" and event["name"].startswith("ProfilerStep#")
    ]
    work = [
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["cat"] in DEVICE_CATEGORIES
    ]
    start_us = min(start for start, _ in profiled)
    end_us = max(end for _, end in profiled + work)
    mean_us = sum(end - start for start, end in profiled) / len(profiled)
    return f"{mean_us / 1000:.1f} ms | {100 * busy_us(work, start_us) / (end_us - start_us):.1f} %"


def busy_us(work: list[tuple[float, float]], start_us: float) -> float:
    """Return the time during which at least one stream worked, from a time on."""
    total_us, done_us = 0.0, start_us
    for begin, end in sorted(work):
        total_us += max(0.0, end - max(begin, done_us))
        done_us = max(done_us, end)
    return total_us


if __name__ == "__main__":
    main()
