"""Phases of a step on the host: they sum to it, and each has the time that its events say."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.analyses.host.other_work import other_work
from stepscope.analyses.host.phase_costs import phase_costs
from stepscope.analyses.host.phase_names import PHASES, phase_of_function, phase_of_label
from stepscope.analyses.host.step_phases import PhaseLocation, StepPhases, step_phases

US = 1000
FIRST, LOADER = "ProfilerStep#1", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NODE = "autograd::engine::evaluate_function: AddmmBackward0"


def op(name: str, start: int, duration: int, number: int = -1) -> list[Any]:
    numbered = {"Sequence number": number, "Fwd thread id": 0} if number >= 0 else {}
    return ["cpu_op", name, start, duration, numbered]


def node(start: int, duration: int, number: int, **more: Any) -> list[list[Any]]:
    arguments = {"Sequence number": number, "Fwd thread id": 1, **more}
    return [
        ["cpu_op", NODE, start, duration, arguments],
        ["cpu_op", "AddmmBackward0", start, duration, arguments],
    ]


def training(start: int = 0, **of_node: Any) -> list[list[Any]]:
    """Return 600 us of training: forward to 200, backward to 400, the optimizer to 600."""
    return [
        op("aten::linear", start, 200, number=7),
        *node(start + 200, 200, 7, **of_node),
        ["user_annotation", "Optimizer.step#SGD.step", start + 400, 200],
        op("aten::_foreach_add_", start + 450, 50),
    ]


def phases(*rows: list[Any], until: int = 1000) -> StepPhases:
    return step_phases(trace_of([["user_annotation", FIRST, 0, until], *rows]))


def times_us(*rows: list[Any], until: int = 1000) -> dict[str, int]:
    """Return each phase's time in the step, in us."""
    result = phases(*rows, until=until)
    totals = {phase: result.total_ns(phase) // US for phase in PHASES}
    return {phase: total for phase, total in totals.items() if total}


TRAINING = {"forward": 200, "backward": 200, "optimizer": 200}


def test_the_parts_of_training() -> None:
    assert times_us(*training(), until=600) == TRAINING


def test_gradients_are_clipped_for_the_optimizer_and_a_value_that_is_read_is_not() -> None:
    clipping = [op("aten::_foreach_norm", 400, 30), op("aten::item", 430, 10)]
    moved = [row if row[2] < 400 else [*row[:2], row[2] + 40, *row[3:]] for row in training()]
    expected = {**TRAINING, "optimizer": 230, "not_model": 10}
    assert times_us(*moved, *clipping, until=640) == expected


@pytest.mark.parametrize(
    ("start", "following", "phase"),
    [
        (600, op("aten::linear", 600, 100), "forward_only"),
        (600, op("aten::argmax", 600, 100), "not_model"),
        (0, op("aten::conv2d", 0, 100), "forward_only"),
    ],
)
def test_a_forward_without_a_number_has_no_backward(
    start: int, following: list[Any], phase: str
) -> None:
    rows = training(start=0 if start else 100)
    assert times_us(*rows, following, until=700) == {**TRAINING, phase: 100}


def test_the_loss_of_a_forward_without_backward_belongs_to_it() -> None:
    rows = [op("aten::linear", 600, 100), op("aten::nll_loss", 700, 50), op("aten::randn", 750, 50)]
    expected = {**TRAINING, "forward_only": 150, "not_model": 50}
    assert times_us(*training(), *rows, until=800) == expected


def test_a_forward_with_nodes_that_no_backward_ran_and_one_of_frozen_layers() -> None:
    rows = [
        op("aten::linear", 0, 100, number=5),  # raises the number: it made a node
        op("aten::conv2d", 100, 100, number=7),  # does not: it is frozen
        *training(start=200),
    ]
    assert times_us(*rows, until=800) == {**TRAINING, "forward": 300, "forward_only": 100}


def test_without_any_numbers_nothing_tells_a_forward_without_backward() -> None:
    rows = [op("aten::linear", 0, 100), ["cpu_op", NODE, 100, 100], op("aten::linear", 200, 100)]
    assert times_us(*rows, until=300) == {"forward": 200, "backward": 100}


def test_an_inference_has_only_forward_calls() -> None:
    rows = [op("aten::linear", 0, 100), op("aten::argmax", 150, 100)]
    assert times_us(*rows, until=250) == {"forward": 250}


def test_a_model_without_heavy_operators_has_a_forward_before_its_backward() -> None:
    rows = [op("aten::mul", 0, 100), *node(100, 100, 7), op("aten::argmax", 200, 100)]
    assert times_us(*rows, until=300) == {"forward": 100, "backward": 100, "not_model": 100}


def test_the_backward_pass_of_another_thread() -> None:
    rows = training()
    rows[1][4]["tid"] = rows[2][4]["tid"] = 7
    assert times_us(*rows, until=600) == TRAINING


def test_gaps_belong_to_the_phase_around_them_unless_they_are_long() -> None:
    def between(gap_us: int, first: str = "aten::linear") -> dict[str, int]:
        rows = [op(first, 0, 100, number=1), op("aten::linear", 100 + gap_us, 100, number=1)]
        rows += node(200 + gap_us, 100, 1)
        return times_us(*rows, until=300 + gap_us)

    assert between(999) == {"forward": 1199, "backward": 100}
    assert between(1000) == {"forward": 200, "backward": 100, "host_code": 1000}
    assert between(30, "aten::item") == {
        "not_model": 100, "forward": 100, "backward": 100, "host_code": 30
    }  # fmt: skip


def test_a_gap_in_the_backward_pass_is_its_own_however_long() -> None:
    rows = [op("aten::linear", 0, 100, number=1), *node(100, 100, 1), *node(3200, 100, 1)]
    assert times_us(*rows, until=3300) == {"forward": 100, "backward": 3200}


@pytest.mark.parametrize(("lengths", "costs"), [((400, 400, 0), ["host_code"]), ((400, 0, 0), [])])
def test_host_code_that_few_steps_have_costs_nothing(
    lengths: tuple[int, ...], costs: list[str]
) -> None:
    rows: list[list[Any]] = []
    start = 0
    for number, length in enumerate(lengths):
        rows.append(["user_annotation", f"ProfilerStep#{number}", start, 600 + length])
        rows += training(start=start)
        start += 600 + length
    trace = trace_of(rows)
    assert step_phases(trace).is_usual("host_code") == bool(costs)
    assert [cost.phase for cost in phase_costs(trace)] == costs


def test_a_short_gap_at_a_border_belongs_to_what_follows() -> None:
    rows = [op("aten::linear", 0, 100, number=1), *node(199, 100, 1)]
    assert times_us(*rows, until=299) == {"forward": 100, "backward": 199}
    rows = [op("aten::linear", 0, 100, number=1), *node(200, 100, 1)]
    assert times_us(*rows, until=300) == {"forward": 100, "backward": 100, "host_code": 100}


def test_a_state_that_is_copied_is_a_checkpoint_with_the_python_behind_it() -> None:
    state = [op("aten::detach", 600 + 20 * row, 10) for row in range(4)]
    found = times_us(*training(), *state, op("aten::randn", 900, 100))
    assert found == {**TRAINING, "checkpoint": 300, "not_model": 100}
    few = times_us(*training(), *state[:3], op("aten::randn", 900, 100))
    assert "checkpoint" not in few


@pytest.mark.parametrize("name", ["gloo:all_reduce", "nccl:all_reduce"])
def test_collectives_of_the_main_thread(name: str) -> None:
    assert times_us(*training(), op(name, 600, 100), until=700) == {**TRAINING, "collectives": 100}


def test_the_main_thread_waits_for_a_collective_of_another() -> None:
    waits = ["cpu_op", "gloo:all_reduce", 650, 250, {"tid": 8}]
    expected = {**TRAINING, "collectives": 250, "host_code": 150}
    assert times_us(*training(), waits) == expected


def test_loading_runtime_calls_and_labels() -> None:
    rows = [
        ["user_annotation", LOADER, 600, 100],
        op("aten::stack", 620, 10),
        ["cuda_runtime", "cudaDeviceSynchronize", 700, 50],
        ["user_annotation", "save checkpoint", 750, 100],
        ["user_annotation", "attention", 850, 100],
    ]
    assert times_us(*training(), *rows) == {
        **TRAINING, "loading": 100, "runtime": 50, "checkpoint": 100, "host_code": 150
    }  # fmt: skip


def test_functions_name_phases_and_lines() -> None:
    found = phases(
        ["python_function", "train.py(3): main", 0, 1000],
        *training(),
        ["python_function", "train.py(9): log", 600, 300],
        ["python_function", "/usr/lib/python3.11/json/__init__.py(120): dump", 610, 200],
        ["python_function", "json/encoder.py(9): encode", 620, 100],
        ["python_function", "<built-in function len>", 630, 10],
        ["python_function", "<built-in function sleep>", 820, 50],
        op("aten::empty", 700, 10),
    )
    assert found.total_ns("json") == 200 * US  # with the operator that it calls
    assert found.total_ns("sleep") == 50 * US
    [location] = found.locations("json")
    dump = "/usr/lib/python3.11/json/__init__.py(120): dump"
    assert location == PhaseLocation(line="train.py(9): log", activity=dump, time_ns=200 * US)
    first, second = found.locations("host_code", 2)
    assert (first.line, first.time_ns // US) == ("train.py(3): main", 100)
    assert (second.line, second.time_ns // US) == ("train.py(9): log", 50)
    assert found.locations("pandas") == ()


def test_a_method_is_one_activity_for_all_objects() -> None:
    write = "<built-in method write of _io.TextIOWrapper object at 0x{}>"
    found = phases(
        ["python_function", write.format("7f01"), 0, 100],
        ["python_function", write.format("7f02"), 100, 200],
        until=300,
    )
    activity = "<built-in method write of _io.TextIOWrapper>"
    assert found.locations("files") == (
        PhaseLocation(line="", activity=activity, time_ns=300 * US),
    )


def test_a_module_that_a_library_calls_is_the_models() -> None:
    found = phases(
        ["python_function", "copy.py(128): deepcopy", 0, 400],
        ["python_function", "nn.Module: Linear_0", 100, 200],
        ["python_function", "<built-in function sleep>", 200, 50],
        until=400,
    )
    totals = {phase: found.total_ns(phase) // US for phase in ("checkpoint", "host_code", "sleep")}
    assert totals == {"checkpoint": 200, "host_code": 150, "sleep": 50}
    assert [location.activity for location in found.locations("host_code")] == [
        "nn.Module: Linear_0"
    ]


def test_steps_with_a_phase() -> None:
    rows: list[list[Any]] = [["user_annotation", f"ProfilerStep#{n}", 700 * n, 700] for n in (0, 1)]
    rows += [*training(), *training(start=700), op("aten::argmax", 600, 50)]
    found = step_phases(trace_of(rows))
    assert found.steps_with("not_model") == 0.5
    assert found.total_ns("not_model") == 50_000
    assert found.times("not_model").tolist() == [[600 * US, 650 * US]]


@pytest.mark.parametrize(
    ("frame", "phase"),
    [
        ("torch/serialization.py(944): save", "checkpoint"),
        ("torch/serialization.py(1480): load", "files"),
        ("torch/serialization.py(2090): load_tensor", "files"),
        ("/x/site-packages/torch/serialization.py(944): save", "checkpoint"),
        ("torch/nn/modules/module.py(2194): state_dict", "checkpoint"),
        ("torch/nn/modules/module.py(2885): train", None),
        ("copy.py(128): deepcopy", "checkpoint"),
        ("copy.py(66): copy", None),
        ("<built-in function dump>", "checkpoint"),
        ("<built-in method dump of _pickle.Pickler object at 0x7f>", "checkpoint"),
        ("torch/utils/tensorboard/writer.py(3): add_scalar", "logging"),
        ("/x/lib/python3.11/logging/__init__.py(3): info", "logging"),
        ("tqdm/std.py(1160): __iter__", "logging"),
        ("<built-in function print>", "logging"),
        ("transformers/tokenization_utils_fast.py(3): _batch_encode_plus", "tokenizing"),
        ("PIL/Image.py(9): resize", "images"),
        ("<built-in method decode of ImagingDecoder object at 0x7f>", "images"),
        ("json/encoder.py(9): encode", "json"),
        ("<built-in method recv of _socket.socket object at 0x7f>", "network"),
        ("<built-in method write of _io.TextIOWrapper object at 0x7f>", "files"),
        ("<built-in function sleep>", "sleep"),
        ("threading.py(327): wait", "locks"),
        ("threading.py(1002): run", None),
        ("numpy/_core/numeric.py(624): argwhere", "numpy"),
        ("pandas/core/frame.py(3): merge", "pandas"),
        ("Python GC", "garbage"),
        ("train.py(7): main", None),
        ("json_tools.py(7): dump", None),
    ],
)
def test_a_function_names_a_phase(frame: str, phase: str | None) -> None:
    assert phase_of_function(frame) == phase


@pytest.mark.parametrize(
    ("label", "phase"),
    [
        ("Optimizer.step#AdamW.step", "optimizer"),
        ("DistributedDataParallel.forward", "forward"),
        ("evaluate", "forward_only"),
        ("val_step", "forward_only"),
        ("interval", None),
        ("save_model", "checkpoint"),
        ("[pl][profile][Callback]ModelCheckpoint{}.on_train_batch_end", "checkpoint"),
        ("[pl][profile][Callback]TQDMProgressBar.on_train_batch_end", "logging"),
        ("[pl][profile]validation_step", None),
        ("log_softmax", None),
        ("log metrics", "logging"),
        ("encoder", None),
    ],
)
def test_a_label_names_a_phase(label: str, phase: str | None) -> None:
    assert phase_of_label(label) == phase


NAMES = [
    ("python_function", "train.py(7): main"),
    ("python_function", "json/encoder.py(9): encode"),
    ("python_function", "nn.Module: Linear_0"),
    ("python_function", "<built-in function sleep>"),
    ("cpu_op", "aten::linear"),
    ("cpu_op", "aten::detach"),
    ("cpu_op", NODE),
    ("cpu_op", "gloo:all_reduce"),
    ("user_annotation", "Optimizer.step#SGD.step"),
    ("user_annotation", LOADER),
    ("user_annotation", "evaluate"),
    ("cuda_runtime", "cudaDeviceSynchronize"),
]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(0, 90),
        st.integers(0, 60),
        st.integers(-1, 4),
        st.sampled_from([100, 100, 7]),
    ),
    min_size=1,
    max_size=20,
)


@given(ROWS, st.lists(st.integers(0, 40), min_size=0, max_size=4))
def test_the_phases_of_a_step_sum_to_it(
    calls: list[tuple[tuple[str, str], int, int, int, int]], lengths: list[int]
) -> None:
    rows: list[list[Any]] = []
    for (category, name), start, duration, number, thread in calls:
        more: dict[str, Any] = {"tid": thread}
        if category == "cpu_op" and number >= 0:
            more |= {"Sequence number": number, "Fwd thread id": int(name == NODE)}
        rows.append([category, name, start, duration, more])
    start = 0
    for number, length in enumerate(lengths):
        rows.append(["user_annotation", f"ProfilerStep#{number}", start, length])
        start += length + number % 2
    found = step_phases(trace_of(rows))
    assert (found.parts_ns >= 0).all()
    assert (found.parts_ns.sum(axis=1) == found.duration_ns).all()
    cut = found.stretches
    assert (cut.end_ns[:-1] <= cut.start_ns[1:]).all()
    total_ns = sum(
        location.time_ns for phase in PHASES for location in found.locations(phase, 10**6)
    )
    assert total_ns == found.duration_ns.sum()


@pytest.mark.parametrize("name", shared_trace_names())
def test_the_phases_of_real_steps_sum_to_them(name: str) -> None:
    found = step_phases(trace_at(SHARED_TRACES / name))
    assert np.array_equal(found.parts_ns.sum(axis=1), found.duration_ns)


def test_a_closures_operators_are_no_update_nor_norms_before_it() -> None:
    """A framework logs norms in the optimizer's call, after the closure's backward pass."""
    rows = [
        ["user_annotation", "Optimizer.step#SGD.step", 0, 900],
        op("aten::linear", 0, 200, number=7),
        *node(200, 200, 7),
        op("aten::linalg_vector_norm", 450, 100),
        op("aten::linalg_vector_norm", 600, 100),
        op("aten::_foreach_add_", 800, 50),
    ]
    assert times_us(*rows, until=900)["optimizer"] == 200 + 300, "norms have the phase around them"
    work = other_work(trace_of([["user_annotation", FIRST, 0, 900], *rows]))
    assert work.times.tolist() == [[450 * US, 700 * US]]
    assert (work.operators_per_step, work.operator_part, work.exposed) == (2, 0.8, 1)


def test_other_work_is_python_and_operators_without_a_phase() -> None:
    rows = [*training(), op("aten::argmax", 800, 100)]
    work = other_work(trace_of([["user_annotation", FIRST, 0, 1000], *rows]))
    assert work.times.tolist() == [[600 * US, 1000 * US]]
    assert work.python.tolist() == [[600 * US, 800 * US], [900 * US, 1000 * US]]
    assert work.operator_part == 0.25
