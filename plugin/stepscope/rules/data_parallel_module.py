"""nn.DataParallel drives several devices from one process."""

import numpy as np

from stepscope.analyses.core import frame_times, requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.base.findings import EvidenceTable
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace
from stepscope.rules.shared import call_costs, ddp, facts, phrases

FORWARD = "DataParallel.forward"
SHOWN_COUNT = 10


class Options(Thresholds):
    """None: DataParallel over several devices is always slower than a process per device."""


def check(trace: Trace, _: Options) -> Results:
    """Report DataParallel where it drives several devices."""
    devices = requirements.devices(trace)
    is_forward = name_mask(trace.host_calls["name"], FORWARD.__eq__)
    requirements.applies_if(is_forward.any(), "no DataParallel ran")
    if len(devices) < 2:
        return
    span, device = window(trace), trace.dialect.device
    times = frame_times.times(trace.host_calls, is_forward)
    inside_ns = intervals.duration_ns(intervals.clip(times, span.start_ns, span.end_ns))
    ordered = sorted(devices, key=lambda one: _busy(trace, one))
    least, most = _busy(trace, ordered[0]), _busy(trace, ordered[-1])
    yield Finding(
        severity="warning",
        message=f"DataParallel drives {len(devices)} {device}s from one process in "
        f"{count(int(is_forward.sum()), 'forward pass', 'forward passes')}; they are busy for "
        f"{share(least)} to {share(most)} of the time.",
        evidence=(
            facts.count("Forward passes in total", int(is_forward.sum())),
            facts.count(f"{device}s in use", len(devices)),
            facts.fraction("Host in DataParallel.forward", inside_ns / max(1, span.duration_ns)),
            facts.fraction(f"Busy, the least busy {device}", least),
            facts.fraction(f"Busy, the busiest {device}", most),
        ),
        tables=(_table(trace, ordered[:SHOWN_COUNT]),),
        events=call_costs.longest(trace, np.flatnonzero(is_forward)),
        fix=_fix(trace, len(devices)),
    )


def _busy(trace: Trace, device: DeviceActivity) -> float:
    return phrases.fraction_of_window(trace, intervals.duration_ns(device.busy))


def _table(trace: Trace, devices: list[DeviceActivity]) -> EvidenceTable:
    return facts.table(
        "Devices",
        {
            trace.dialect.device: "count",
            "Busy": "share",
            "Computing in total": "ns",
            "Copies and communication in total": "ns",
        },
        (
            (
                device.device,
                _busy(trace, device),
                intervals.duration_ns(device.computation),
                intervals.duration_ns(intervals.merged(device.copies, device.communication)),
            )
            for device in devices
        ),
    )


def _fix(trace: Trace, device_count: int) -> Fix:
    group = trace.dialect.terms.get("process_group")
    return _processes(str(device_count), f'"{group}"' if group else "")


def _processes(count_text: str, group: str) -> Fix:
    return Fix(
        "Run one process per device, with DistributedDataParallel.",
        f"# torchrun --nproc-per-node={count_text} train.py\n"
        f"dist.init_process_group({group})\n"
        'rank = int(os.environ["LOCAL_RANK"])\n'
        "torch.accelerator.set_device_index(rank)\n"
        "model = DDP(model.to(rank), device_ids=[rank])\n"
        "loader = DataLoader(dataset, sampler=DistributedSampler(dataset), batch_size=...)",
        verify="Each process writes a separate trace; the next traces contain "
        "DistributedDataParallel.forward, and devices are equally busy.",
        caveats=(
            "The loader's batch is now one device's part: divide it by the number of devices.",
            "Losses are means of each rank's batch; log their mean over ranks.",
        ),
    )


RULE = Rule(
    id="data-parallel-module",
    title="nn.DataParallel drives several devices from one process",
    passed="Each device has a process of its own",
    category="communication",
    why="In every forward pass DataParallel copies the whole model to all devices, scatters the "
    "batch, runs one Python thread per device under one interpreter lock, and gathers the outputs "
    "on the first device, which therefore has more work and memory than the others.",
    detects="The annotation DataParallel.forward in a trace in which at least two devices do real "
    "work.",
    silent=(
        "With no device, or no DataParallel, it does not apply.",
        "Over a single device DataParallel calls the model directly, and costs nothing.",
        "DistributedDataParallel does not count.",
    ),
    saving="None is claimed: the saving of one process per device depends on the model, from a few "
    "percent to several times.",
    fix=_processes("gpu", ""),
    effort="hour",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times"}),
    priority="program",
    links=("generated/torch.nn.DataParallel.html", "notes/cuda.html", ddp.DOCUMENTATION),
    origin="torch-tb-profiler; PyTorch tuning guide",
)
