"""nn.DataParallel drives several devices from one process."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times, requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import EvidenceTable, Fix
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule
from stepscope.rules.shared import call_costs, ddp, facts

FORWARD = "DataParallel.forward"
SHOWN_COUNT = 10


@dataclass(frozen=True, kw_only=True)
class Options:
    """None: DataParallel over several devices is always slower than a process a device."""


def check(trace: Trace, _: Options) -> Iterator[Finding]:
    """Report DataParallel where it drives several devices."""
    devices = requirements.devices(trace)
    is_forward = name_mask(trace.host_calls["name"], FORWARD.__eq__)
    if not is_forward.any():
        msg = "no DataParallel ran"
        raise NotApplicableError(msg)
    if len(devices) < 2:
        return
    span = window(trace)
    inside = intervals.clip(
        frame_times.times(trace.host_calls, is_forward), span.start_ns, span.end_ns
    )
    part = intervals.duration_ns(inside) / max(1, span.duration_ns)
    device = trace.dialect.device
    least, most = (of(_busy(trace, each) for each in devices) for of in (min, max))
    yield Finding(
        severity="warning",
        message=f"DataParallel drives {len(devices)} {device}s from one process in "
        f"{count(int(is_forward.sum()), 'forward pass', 'forward passes')}; they are busy for "
        f"{share(least)} to {share(most)} of the time.",
        evidence=(
            facts.count("Forward passes", int(is_forward.sum())),
            facts.count(f"{device}s at work", len(devices)),
            facts.fraction("Host in DataParallel.forward", part),
            facts.fraction(f"Busy, the least busy {device}", least),
            facts.fraction(f"Busy, the busiest {device}", most),
        ),
        tables=(_table(trace, devices),),
        events=call_costs.longest(trace, np.flatnonzero(is_forward)),
        fix=_fix(trace, len(devices)),
    )


def _busy(trace: Trace, device: DeviceActivity) -> float:
    return intervals.duration_ns(device.busy) / window(trace).reference_ns


def _table(trace: Trace, devices: tuple[DeviceActivity, ...]) -> EvidenceTable:
    order = sorted(devices, key=lambda each: _busy(trace, each))[:SHOWN_COUNT]
    rows = tuple(
        (
            each.device,
            _busy(trace, each),
            intervals.duration_ns(each.computation),
            intervals.duration_ns(intervals.merged(each.copies, each.communication)),
        )
        for each in order
    )
    return facts.table(
        "Devices",
        {
            trace.dialect.device: "count",
            "Busy": "share",
            "Computing": "ns",
            "Copies and communication": "ns",
        },
        rows,
    )


def _fix(trace: Trace, device_count: int) -> Fix:
    group = trace.dialect.terms.get("process_group")
    return _processes(str(device_count), f'"{group}"' if group else "")


def _processes(count_text: str, group: str) -> Fix:
    return Fix(
        "Run one process for each device, with DistributedDataParallel.",
        f"# torchrun --nproc-per-node={count_text} train.py\n"
        f"dist.init_process_group({group})\n"
        'rank = int(os.environ["LOCAL_RANK"])\n'
        "torch.accelerator.set_device_index(rank)\n"
        "model = DDP(model.to(rank), device_ids=[rank])\n"
        "loader = DataLoader(dataset, sampler=DistributedSampler(dataset), batch_size=...)",
        verify="Each process writes a recording of its own; the next ones hold "
        "DistributedDataParallel.forward, and devices are busy alike.",
        caveats=(
            "The loader's batch is one device's share now: divide it by the number of devices.",
            "Losses are means of each rank's own batch; log their mean over ranks.",
        ),
    )


RULE = Rule(
    id="data-parallel-module",
    title="nn.DataParallel drives several devices from one process",
    category="communication",
    why="In every forward pass DataParallel copies the whole model to all devices, scatters the "
    "batch, runs one Python thread for each device under one interpreter lock, and gathers the "
    "outputs on the first device, which therefore works and holds more than the others.",
    detects="The annotation DataParallel.forward in a recording in which at least two devices do "
    "real work.",
    silent=(
        "With no device, or no DataParallel, it does not apply.",
        "Over a single device DataParallel calls the model directly, and costs nothing.",
        "DistributedDataParallel is not meant.",
    ),
    saving="None is claimed: what a process for each device wins depends on the model, from a few "
    "percent to several times.",
    fix=_processes("gpu", ""),
    effort="hour",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times"}),
    priority=530,
    links=(
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html",
        ddp.DOCUMENTATION,
    ),
    origin="torch-tb-profiler; PyTorch tuning guide",
)
