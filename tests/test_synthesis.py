"""What holds for every trace that the synthesiser writes, and whole answers for small schedules."""

import gzip
import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import synthesis
from generated import examples
from synthesis import ScheduleError, synthesise, text, write
from synthesis.build import (
    Action,
    dataloader,
    host,
    item,
    kernel,
    op,
    steps,
    sync,
    thread,
    to_cpu,
    to_cuda,
)
from synthesis.machines import MACHINES
from synthesis.schedule import OPTIONS
from synthetic_scenarios import SCENARIOS

Event = dict[str, Any]

SAMPLE_LOGS = Path(__file__).resolve().parent.parent / "sample_logs"
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
HOST = (*CALLS, "cpu_op", "user_annotation", "python_function", "Operator")
MACHINES_WITH_DEVICE = [name for name, machine in MACHINES.items() if machine.has_device]

# Any schedule: operators that nest, launch, copy and wait, on two threads and two streams.
STREAMS = st.sampled_from([7, 20])
DURATIONS = st.integers(0, 400).map(lambda quarters: quarters / 4)
SIZES = st.integers(1, 4_000_000)
LEAVES: st.SearchStrategy[Action] = st.one_of(
    st.builds(lambda us, stream: kernel("k", us, stream=stream), DURATIONS, STREAMS),
    st.builds(lambda us: kernel("k", us, by="cuLaunchKernelEx"), DURATIONS),
    st.builds(lambda stream: sync("stream", stream=stream), STREAMS),
    st.builds(lambda: sync("device")),
    st.builds(host, DURATIONS),
    st.builds(item),
    st.builds(lambda size: to_cpu(size, [size]), SIZES),
    st.builds(
        lambda size, pinned: to_cuda(size, [size], pinned=pinned, non_blocking=pinned),
        SIZES,
        st.booleans(),
    ),
)
TREES: st.SearchStrategy[Action] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda us, body: op("aten::mm", *body, us=us, dims=[[8, 8]]),
            DURATIONS,
            st.lists(inner, max_size=4),
        ),
        st.builds(lambda body: thread("autograd", *body), st.lists(inner, max_size=4)),
    ),
    max_leaves=12,
)
SCHEDULES = st.builds(
    lambda machine, body, jitter: {
        "machine": machine,
        "record": ["shapes", "memory", "stacks"],
        "jitter": jitter,
        "queue_depth": 4,
        "actions": [steps(3, *body)],
    },
    st.sampled_from(MACHINES_WITH_DEVICE),
    st.lists(TREES, max_size=6),
    st.sampled_from([0, 0.1]),
)


def complete(document: Event, categories: tuple[str, ...]) -> list[Event]:
    """The complete events of some categories, in the order of the file."""
    return [
        event
        for event in document["traceEvents"]
        if event["ph"] == "X" and event.get("cat") in categories
    ]


def end(event: Event) -> float:
    return round(float(event["ts"] + event["dur"]), 3)


def by_lane(events: list[Event]) -> dict[tuple[Any, Any], list[Event]]:
    lanes = defaultdict(list)
    for event in events:
        lanes[event["pid"], event["tid"]].append(event)
    return lanes


@examples(60)
@given(SCHEDULES)
def test_a_stream_does_one_thing_at_a_time_in_the_order_of_the_launches(schedule: Event) -> None:
    document = synthesise(schedule)
    for works in by_lane(complete(document, DEVICE)).values():
        assert all(end(before) <= after["ts"] for before, after in pairwise(works))
        correlations = [event["args"]["correlation"] for event in works]
        assert correlations == sorted(correlations)


@examples(60)
@given(SCHEDULES)
def test_every_work_follows_its_launch(schedule: Event) -> None:
    document = synthesise(schedule)
    calls = {event["args"]["correlation"]: event for event in complete(document, CALLS)}
    assert len(calls) == len(complete(document, CALLS))
    for work in complete(document, DEVICE):
        assert work["ts"] > calls[work["args"]["correlation"]]["ts"]


@examples(60)
@given(SCHEDULES)
def test_a_wait_ends_no_earlier_than_the_work_it_waits_for(schedule: Event) -> None:
    document = synthesise(schedule)
    calls = complete(document, CALLS)
    launched_at = {event["args"]["correlation"]: event["ts"] for event in calls}
    works = complete(document, DEVICE)
    for call in calls:
        if call["name"].endswith("DeviceSynchronize"):
            before = [w for w in works if launched_at[w["args"]["correlation"]] < call["ts"]]
            assert all(end(work) <= end(call) for work in before)


@examples(60)
@given(SCHEDULES)
def test_host_events_nest_on_every_thread(schedule: Event) -> None:
    document = synthesise(schedule)
    for events in by_lane(complete(document, HOST)).values():
        open_ends: list[float] = []
        for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
            while open_ends and open_ends[-1] <= event["ts"]:
                open_ends.pop()
            assert not open_ends or end(event) <= open_ends[-1]
            open_ends.append(end(event))


@examples(30)
@given(SCHEDULES, st.sampled_from(["kineto", "compact"]))
def test_the_text_is_json_and_says_the_same(schedule: Event, layout: str) -> None:
    document = synthesise(schedule)
    assert json.loads(text(document, layout=layout)) == document


@examples(20)
@given(SCHEDULES)
def test_the_same_schedule_gives_the_same_text(schedule: Event) -> None:
    assert text(synthesise(schedule)) == text(synthesise(schedule))


def test_steps_are_as_long_as_written() -> None:
    document = synthesise(
        [
            steps(2, host(100), op("aten::mm", kernel("gemm", 40), us=10), gap_us=5),
            steps(1, host(300)),
        ]
    )
    rows = [
        (event["cat"], event["name"], event["ts"], event["dur"])
        for event in document["traceEvents"]
        if event["ph"] == "X" and event["cat"] != "Trace"
    ]
    assert rows == [
        ("user_annotation", "ProfilerStep#1", 0, 115),
        ("cpu_op", "aten::mm", 100, 15),
        ("user_annotation", "ProfilerStep#2", 120, 115),
        ("cpu_op", "aten::mm", 220, 15),
        ("user_annotation", "ProfilerStep#3", 240, 300),
        ("cuda_runtime", "cudaLaunchKernel", 110, 5),
        # 3 us from the launch's end to the kernel's start, and its mirror on the device.
        ("kernel", "gemm", 118, 40),
        ("gpu_user_annotation", "ProfilerStep#1", 118, 40),
        ("cuda_runtime", "cudaLaunchKernel", 230, 5),
        ("kernel", "gemm", 238, 40),
        ("gpu_user_annotation", "ProfilerStep#2", 238, 40),
        # The profiler's own wait stands behind the last step.
        ("cuda_runtime", "cudaDeviceSynchronize", 587, 2),
    ]


def test_item_waits_until_the_stream_is_drained() -> None:
    document = synthesise([kernel("long", 1000), item(4)])
    rows = [
        (event["name"], event["ts"], event["dur"])
        for event in complete(document, ("cpu_op", "cuda_runtime", "kernel", "gpu_memcpy"))
    ]
    assert rows == [
        ("aten::item", 5, 1008),
        ("aten::_local_scalar_dense", 8, 1004),
        ("cudaLaunchKernel", 0, 5),
        ("long", 8, 1000),
        ("cudaMemcpyAsync", 11, 5),
        ("cudaStreamSynchronize", 16, 995),
        ("Memcpy DtoH (Device -> Pinned)", 1008, 1),
        ("cudaDeviceSynchronize", 1060, 2),
    ]


def test_a_pageable_copy_blocks_its_call_and_a_pinned_one_does_not() -> None:
    pageable = synthesise([{"copy": "HtoD", "bytes": 800_000, "memory": "pageable"}])
    pinned = synthesise([{"copy": "HtoD", "bytes": 800_000}])
    (blocked, *_), (asked, *_) = complete(pageable, CALLS), complete(pinned, CALLS)
    (copied,), (copied_pinned,) = complete(pageable, DEVICE), complete(pinned, DEVICE)
    assert (blocked["dur"], end(blocked)) == (108, end(copied))
    assert (copied["name"], copied["dur"]) == ("Memcpy HtoD (Pageable -> Device)", 100)
    assert (asked["dur"], copied_pinned["dur"]) == (5, 16)
    assert copied_pinned["name"] == "Memcpy HtoD (Pinned -> Device)"


def test_a_full_launch_queue_blocks_the_next_launch() -> None:
    document = synthesise({"queue_depth": 2, "actions": [kernel("k", 100)] * 4})
    launches = [
        (event["ts"], event["dur"])
        for event in complete(document, CALLS)
        if event["name"] == "cudaLaunchKernel"
    ]
    # The kernels end at 108, 208, ...: the third launch waits for the first of them.
    assert launches == [(0, 5), (5, 5), (10, 103), (113, 100)]


def test_streams_run_side_by_side_unless_one_waits_for_an_event_of_the_other() -> None:
    free = [kernel("a", 100), kernel("b", 50, stream=20)]
    held = [kernel("a", 100), {"event": "a"}, {"wait": "a", "stream": 20}, free[1]]
    starts = [
        {event["name"]: event["ts"] for event in complete(synthesise(actions), DEVICE)}
        for actions in (free, held)
    ]
    assert starts == [{"a": 8, "b": 13}, {"a": 8, "b": 108}]


def test_a_graph_launch_gives_every_kernel_its_correlation() -> None:
    document = synthesise([{"graph": [kernel("a", 3), kernel("b", 4)], "us": 10}])
    (launch, _) = complete(document, CALLS)
    works = complete(document, DEVICE)
    assert launch["name"] == "cudaGraphLaunch"
    assert {work["args"]["correlation"] for work in works} == {launch["args"]["correlation"]}
    assert [(work["name"], work["ts"]) for work in works] == [("a", 13), ("b", 16)]


def test_a_kernel_from_before_the_recording_has_no_launch() -> None:
    document = synthesise([kernel("orphan", 10, by="none")])
    (orphan,) = complete(document, DEVICE)
    assert "correlation" not in orphan["args"]
    assert [call["name"] for call in complete(document, CALLS)] == ["cudaDeviceSynchronize"]


def test_times_have_three_decimals_however_large_they_are() -> None:
    start_us = 3_913_512_345_678.901
    document = synthesise({"start_us": start_us, "actions": [op("aten::relu", us=0.007)]})
    times = re.findall(r'"(?:ts|dur)": ([^\s,]+)', text(document))
    assert {len(time.partition(".")[2]) for time in times} == {3}
    assert "3913512345678.901" in times
    assert "0.007" in times


def test_memory_keeps_its_totals_and_addresses() -> None:
    actions = [{"alloc": 3 << 20, "as": "a"}, {"alloc": 512, "as": "b"}, {"free": "a"}]
    document = synthesise({"record": ["memory"], "actions": actions})
    noted = [event["args"] for event in document["traceEvents"] if event["name"] == "[memory]"]
    assert [(each["Bytes"], each["Total Allocated"]) for each in noted] == [
        (3 << 20, 3 << 20),
        (512, (3 << 20) + 512),
        (-(3 << 20), 512),
    ]
    assert [each["Total Reserved"] for each in noted] == [4 << 20] * 3
    assert noted[0]["Addr"] == noted[2]["Addr"] != noted[1]["Addr"]


@pytest.mark.parametrize(
    ("machine", "category", "launch", "copy", "read"),
    [
        ("h100", "kernel", "cudaLaunchKernel", "Pageable -> Device", "cudaStreamSynchronize"),
        ("v100-2021", "Kernel", "cudaLaunchKernel", "Pageable -> Device", "cudaStreamSynchronize"),
        ("mi250", "kernel", "hipLaunchKernel", "Host -> Device", "hipMemcpyWithStream"),
    ],
)
def test_each_machine_has_its_own_words(
    machine: str, category: str, launch: str, copy: str, read: str
) -> None:
    body = [to_cuda(4096, [32, 32]), op("aten::mm", kernel("gemm", 5)), item()]
    document = synthesise({"machine": machine, "actions": [steps(1, *body)]})
    calls = [call["name"] for call in complete(document, CALLS)]
    assert launch in calls
    assert read in calls
    assert [event["name"] for event in complete(document, (category,))] == ["gemm"]
    copies = complete(document, ("gpu_memcpy", "Memcpy"))
    assert copies[0]["name"] == f"Memcpy HtoD ({copy})"


def test_the_old_format_has_whole_microseconds_and_no_mirrors() -> None:
    body = [dataloader(0, 10.4), op("aten::mm", kernel("gemm", 5.3), dims=[[2, 2]])]
    schedule = {"machine": "v100-2021", "record": ["shapes"], "actions": [steps(2, *body)]}
    document = synthesise(schedule)
    events = document["traceEvents"]
    assert all(isinstance(event["ts"], int) for event in events)
    assert {event.get("cat") for event in events if event["ph"] == "X"} == {
        "Operator",
        "Runtime",
        "Kernel",
        "Trace",
    }
    assert {event["tid"] for event in events if event.get("cat") == "Kernel"} == {"stream 7"}


def test_a_cpu_has_no_device() -> None:
    document = synthesise({"machine": "cpu", "actions": [steps(2, op("aten::mm", us=10))]})
    assert document["deviceProperties"] == []
    assert {event["cat"] for event in complete(document, (*HOST, *DEVICE))} == {
        "cpu_op",
        "user_annotation",
    }
    with pytest.raises(ScheduleError, match="'cpu' has no device"):
        synthesise({"machine": "cpu", "actions": [kernel("k", 1)]})


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ([{"kernle": "gemm"}], r"actions\[0\]: 'kernle' is no action"),
        ([{"op": "a", "body": [{"host": 1, "us": 2}]}], r"actions\[0\]\.body\[0\]: 'host' has no"),
        ({"machine": "h900", "actions": []}, "unknown machine 'h900'"),
        ({"stepz": 1, "actions": []}, "unknown setting"),
        ({"record": ["flops"], "actions": []}, "cannot record"),
        ([{"wait": "never", "stream": 7}], "'never' is waited for but never recorded"),
        ([{"free": "nothing"}], "'nothing' is freed but was not allocated"),
    ],
)
def test_a_mistake_in_a_schedule_is_told(schedule: Any, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        synthesise(schedule)


def test_every_action_of_the_manual_is_understood() -> None:
    """The examples in the package's docstring are run, so that they cannot go stale."""
    manual = synthesis.__doc__ or ""
    examples = re.findall(r"\{(?:[^{}]|\{[^{}]*\})*\}", manual.partition("Structure")[2])
    actions = [yaml.safe_load(each.replace("[...]", "[]")) for each in examples]
    assert {next(iter(action)) for action in actions} == set(OPTIONS)
    ready = [kernel("k", 1), {"event": "loss"}]
    document = synthesise({"record": ["shapes", "memory", "stacks"], "actions": ready + actions})
    assert len(complete(document, HOST)) > len(actions)


def test_a_trace_says_that_it_is_synthetic() -> None:
    document = synthesise({"scenario": "s", "about": "why", "actions": [host(1)]})
    assert document["stepscope"]["synthetic"] is True
    assert document["stepscope"]["scenario"] == "s"
    assert document["stepscope"]["schedule"] == "why"


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    document = synthesise([kernel("gemm", 1)])
    paths = [tmp_path / "a.json.gz", tmp_path / "b.json.gz"]
    for path in paths:
        write(document, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


VARIANTS = [
    (number, scenario, side)
    for number, (scenario, sides) in enumerate(SCENARIOS.items())
    for side in sides
]


@pytest.mark.parametrize(("number", "scenario", "side"), VARIANTS)
def test_a_sample_log_is_what_its_schedule_gives(number: int, scenario: str, side: str) -> None:
    folder = SAMPLE_LOGS / f"synthetic_{scenario}" / side
    (path,) = folder.glob("*.pt.trace.json.gz")
    assert path.stat().st_size < 300_000
    document = synthesise(SCENARIOS[scenario][side].schedule(scenario, seed=number))
    remake = "run: python sample_logs/record/synthetic_all.py"
    assert gzip.decompress(path.read_bytes()).decode() == text(document), remake
