"""Values of tensors in two unrecorded steps: what is noted, and that nothing else changes."""

import _thread
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._C import _len_torch_dispatch_stack
from torch._dynamo.utils import counters
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from stepscope.recording.step_times import FIRST_READ, LEAST_ROOM, StepTimes
from stepscope.recording.tensor_facts import digest_of, elements_in_memory, padding_in, zeros_in
from stepscope.recording.tensor_values import STEP_COUNT, TensorValues, shares_of_shapes

HERE = "test_tensor_values.py"


@pytest.fixture(autouse=True)
def _nothing_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process compile."""
    monkeypatch.setitem(counters, "frames", Counter())


@pytest.fixture(autouse=True)
def _the_machine_may_be_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.recording.noted_operators.MOST_MEAN_NS", 10**9)


def noted(step: Callable[[], None]) -> dict[str, Any]:
    """Return what is noted of two runs of a step."""
    values = TensorValues()
    for _ in range(STEP_COUNT):
        assert values.begin()
        step()
        values.end()
    return values.summary()


def lines(rows: list[dict[str, Any]], name: str = "line") -> list[str]:
    return [row[name] for row in rows]


def line_of(function: Callable[..., Any], offset: int) -> str:
    code = function.__code__
    return f"{HERE}({code.co_firstlineno + offset}): {code.co_name}"


def ends_with(rows: list[str], ends: list[str]) -> bool:
    return len(rows) == len(ends) and all(
        row.endswith(end) for row, end in zip(rows, ends, strict=True)
    )


def test_a_second_forward_pass_is_a_repeated_result_at_the_line_that_calls_it() -> None:
    model = torch.nn.Linear(8, 4)

    def step() -> None:
        batch = torch.randn(16, 8)
        model(batch).sum().backward()
        with torch.no_grad():
            model(batch)

    [repeated] = noted(step)["repeated"]
    assert repeated["line"].endswith(line_of(step, 4))
    assert repeated["first_line"].endswith(line_of(step, 2))
    [[name, shapes, total, ranges, time_ns]] = repeated["calls"]
    assert (name, shapes, total, ranges) == ("aten::addmm", [[4], [16, 8], [8, 4]], 2, [[1, 1]])
    assert 0 < time_ns == repeated["time_ns"]


def test_a_result_that_no_step_changes_is_constant_and_no_repeated_one() -> None:
    def step() -> None:
        torch.randn(64).cos()
        for _ in range(3):
            torch.arange(64.0).sin()

    summary = noted(step)
    assert ends_with(lines(summary["constant"]), [line_of(step, 3)])
    assert summary["constant"][0]["count"] == 6
    assert summary["repeated"] == []


def test_an_operator_of_several_results_is_constant_where_all_of_them_are() -> None:
    edges = torch.arange(64).reshape(2, 32)

    def step() -> None:
        torch.unique(edges, dim=1)
        torch.randn(8, 64).sort(1)

    summary = noted(step)
    assert ends_with(lines(summary["constant"]), [line_of(step, 1)])
    assert [call[0] for call in summary["constant"][0]["calls"]] == ["aten::unique_dim"]


def test_zeros_of_an_operand_are_counted_but_not_those_of_a_relu() -> None:
    def step() -> None:
        torch.eye(64) @ torch.randn(64, 64)
        torch.relu(torch.randn(64, 64)) @ torch.randn(64, 64)

    [sparse] = noted(step)["zeros"]
    assert sparse["line"].endswith(line_of(step, 1))
    assert sparse["zero_fraction"] == pytest.approx(63 / 64, abs=1e-4)
    assert sparse["call"] == ["aten::mm", [[64, 64], [64, 64]], [[0, 0]]]


def test_padding_of_token_ids_is_counted_in_all_and_in_whole_columns() -> None:
    table = torch.nn.Embedding(50, 4)

    def step() -> None:
        ids = torch.randint(1, 50, (2, 16))
        ids[0, 8:] = 0
        ids[1, 12:] = 0
        table(ids)

    [[line, count, elements, padded, removable]] = noted(step)["ids"]
    assert line.endswith(line_of(step, 4))
    assert (count, elements, padded, removable) == (2, 64, 24, 16)


def test_a_gradient_that_no_optimizer_reads_is_unused() -> None:
    base, head = torch.nn.Linear(64, 32), torch.nn.Linear(32, 4)
    optimizer = torch.optim.SGD(head.parameters())

    def step() -> None:
        optimizer.zero_grad()
        head(base(torch.randn(16, 64))).sum().backward()
        optimizer.step()

    unused = noted(step)["unused_gradients"]
    assert (unused["count"], unused["elements"]) == (2, 64 * 32 + 32)
    assert ["aten::mm", [[32, 16], [16, 64]], [[0, 0]]] in unused["calls"]
    base.requires_grad_(requires_grad=False)
    base.zero_grad()
    assert noted(step)["unused_gradients"].get("count", 0) == 0


def test_unused_gradients_are_of_whole_models_if_no_module_around_has_others() -> None:
    teacher, student = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(student.parameters())

    def step() -> None:
        optimizer.zero_grad()
        batch = torch.randn(16, 8)
        (student(batch) - teacher(batch)).square().mean().backward()
        optimizer.step()

    unused = noted(step)["unused_gradients"]
    assert unused["is_of_whole_models"]
    assert 0 < unused["time_ns"] < unused["gradients_ns"]
    both = torch.nn.ModuleList([teacher, student])
    assert not noted(step)["unused_gradients"]["is_of_whole_models"]
    del both


def test_checkpointing_computes_again_on_purpose() -> None:
    from torch.utils.checkpoint import checkpoint

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8))

    def step() -> None:
        batch = torch.randn(16, 8, requires_grad=True)
        checkpoint(model, batch, use_reentrant=False).sum().backward()

    assert [row["is_recomputed"] for row in noted(step)["repeated"]] == [True]


def test_the_training_is_the_same_with_and_without() -> None:
    def weights(*, is_read: bool) -> torch.Tensor:
        torch.manual_seed(0)
        layer = torch.nn.Linear(8, 8)
        model = torch.nn.Sequential(layer, torch.nn.Dropout(), torch.nn.ReLU())
        optimizer = torch.optim.Adam(model.parameters())

        def step() -> None:
            optimizer.zero_grad()
            functional.mse_loss(model(torch.randn(4, 8)), torch.zeros(4, 8)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

        if is_read:
            noted(step)
        else:
            step()
            step()
        return layer.weight.detach()

    assert torch.equal(weights(is_read=True), weights(is_read=False))


def test_an_error_of_the_step_reaches_it_and_one_of_the_reading_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = TensorValues()
    assert values.begin()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.ones(2, 3) @ torch.ones(2, 3)
    monkeypatch.setattr("stepscope.recording.tensor_values.digest_of", None)
    torch.randn(64).sin()
    values.end()
    assert not values.begin()
    assert values.summary() == {}


def test_a_mode_of_the_script_around_the_end_of_a_step_is_left_alone() -> None:
    values = TensorValues()
    assert values.begin()
    with FlopCounterMode(display=False) as flops:
        values.end()
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert flops.get_total_flops() == 16
    assert not values.begin()
    assert _len_torch_dispatch_stack() == 1
    assert values.leave()
    assert _len_torch_dispatch_stack() == 0


def test_a_step_that_another_thread_ends_is_left_in_its_own() -> None:
    times = StepTimes(has_values=True)
    for _ in range(FIRST_READ - 1):
        times.step_started(room=LEAST_ROOM)
        times.step_ended()
    times.step_started(room=LEAST_ROOM)
    assert _len_torch_dispatch_stack() == 1
    thread = threading.Thread(target=times.step_ended)
    thread.start()
    thread.join()
    times.step_started(room=LEAST_ROOM)
    assert _len_torch_dispatch_stack() == 0
    times.stretch_ended()
    assert times.values == {}


def test_operators_are_read_in_a_thread_that_python_did_not_start() -> None:
    """On a device, autograd runs backward functions in such threads: no frame called them."""
    values = TensorValues()
    for _ in range(STEP_COUNT):
        assert values.begin()
        call = torch.ops.aten.sin.default, (), (torch.ones(64),)
        _thread.start_new_thread(values.__torch_dispatch__, call)
        while not (values._calls or values._is_failed):  # noqa: SLF001 (no event is set)
            time.sleep(0.001)
        values.end()
    assert values.summary()["step_count"] == STEP_COUNT


def test_a_step_that_is_interrupted_does_not_count() -> None:
    values = TensorValues()
    for is_whole in (False, True):
        assert values.begin()
        torch.randn(64).sin()
        values.end(is_whole=is_whole)
    assert values.summary() == {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
def test_a_digest_is_of_all_values_of_a_small_tensor(dtype: torch.dtype) -> None:
    tensor = (torch.arange(64) % 7).to(dtype)
    other = tensor.clone()
    assert digest_of(tensor) == digest_of(other) is not None
    other[-1] = 0 if tensor[-1] else 1
    assert digest_of(tensor) != digest_of(other)
    assert digest_of(tensor.reshape(8, 8).t()) == digest_of(tensor.reshape(8, 8).t().contiguous())


def test_equal_elements_and_few_have_no_digest() -> None:
    assert digest_of(torch.zeros(64)) is None
    assert digest_of(torch.arange(15)) is None
    assert digest_of(torch.zeros(4, 0, 4)) is None


def test_of_a_large_tensor_elements_at_regular_distances_have_a_digest() -> None:
    large = torch.randn(64, 3, 128, 128)
    other = large.clone()
    assert digest_of(large) == digest_of(other) is not None
    assert digest_of(large) != digest_of(large + 1)


def test_padding_may_precede_but_equal_rows_and_few_kinds_are_none() -> None:
    ids = torch.arange(1, 33).reshape(2, 16)
    ids[0, :10] = 0
    ids[1, :3] = 0
    assert padding_in(ids) == (13, 6)
    assert padding_in(torch.arange(16).expand(4, 16)) is None
    assert padding_in(torch.zeros(4, 16, dtype=torch.long)) is None
    assert padding_in(torch.arange(32).reshape(2, 16)) == (0, 0)


def test_positions_of_zeros_of_a_signal_are_those_without_any_channel() -> None:
    signal = torch.ones(2, 8, 10)
    signal[0, :, 6:] = 0
    assert zeros_in(signal, is_convolved=True) == pytest.approx((0.2, 0.2))
    image = torch.zeros(1, 1, 8, 8)
    image[..., 0] = 1
    assert zeros_in(image, is_convolved=True) == pytest.approx((0.875, 0.0))


def test_shares_of_shapes_know_transposed_gradients_and_leave_out_biases() -> None:
    wide, tall, bias = torch.zeros(4, 8), torch.zeros(8, 4), torch.zeros(4)
    assert shares_of_shapes([wide, wide, bias], [wide, bias]) == {(4, 8): 0.5, (8, 4): 0.5}
    assert shares_of_shapes([wide, tall], [wide]) == {(4, 8): 1.0}


def test_two_early_steps_of_a_stretch_with_room_are_read_and_not_measured() -> None:
    times = StepTimes(has_values=True)
    for number in range(1, 16):
        times.step_started(room=15 - number)
        torch.randn(64).sin()
        times.step_ended()
    times.stretch_ended()
    assert times.values["step_count"] == STEP_COUNT
    assert times.summary["count"] <= 15 - STEP_COUNT - 1


@pytest.mark.parametrize(("room", "has_values"), [(LEAST_ROOM - 1, True), (LEAST_ROOM, False)])
def test_a_stretch_without_room_or_request_is_only_measured(
    room: int,
    has_values: bool,  # noqa: FBT001
) -> None:
    times = StepTimes(has_values=has_values)
    for _ in range(FIRST_READ + 3):
        times.step_started(room=room)
        times.step_ended()
    times.stretch_ended()
    assert times.values == {}


def test_compiled_code_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(counters, "frames", Counter(total=1))
    assert not TensorValues().begin()


def test_a_line_that_runs_many_times_for_small_operators_is_a_loop() -> None:
    layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(8))
    rows = torch.zeros(40, 4)

    def step() -> None:
        x = torch.zeros(2, 4)
        for layer in layers:
            x = layer(x)
        for row in rows:
            row.sum()
            functional.relu(row)

    loops = noted(step)["loops"]
    by_line = {loop["line"]: (loop["runs"], loop["count"]) for loop in loops}
    code = step.__code__.co_firstlineno
    assert {line[line.index("(") :]: runs for line, runs in by_line.items()} == {
        f"({code + 5}): step": (40, 40),
        f"({code + 6}): step": (40, 40),
    }


def test_an_optimizer_that_goes_through_parameters_is_no_loop_of_the_user() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(4)) for _ in range(40)]
    optimizer = torch.optim.SGD(parameters, foreach=False)

    def step() -> None:
        for parameter in parameters:
            parameter.grad = torch.ones(4)
        optimizer.step()

    loops = noted(step)["loops"]
    assert len(loops) == 1
    assert loops[0]["line"].endswith(line_of(step, 2))


def test_a_loop_in_a_module_is_one_and_a_rollout_through_layers_is_none() -> None:
    class Masked(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return torch.stack([row.sum() for row in rows])

    module, layer = Masked(), torch.nn.Linear(4, 4)

    def loops_inside() -> None:
        module(torch.zeros(40, 4))

    def rolls_out() -> None:
        state = torch.zeros(2, 4)
        for _ in range(40):
            state = layer(state)
            state = state * 2 + 1

    def repeats_a_model() -> None:
        model = torch.nn.Sequential(Twice(layer))
        for _ in range(40):
            model(torch.zeros(2, 4))

    assert [loop["runs"] for loop in noted(loops_inside)["loops"]] == [40]
    assert noted(rolls_out)["loops"] == []
    assert noted(repeats_a_model)["loops"] == []


class Twice(torch.nn.Module):
    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.layer(x)
        return 2 * hidden.tanh()


def test_a_loop_in_a_function_that_loops_call_is_one() -> None:
    def loss(row: torch.Tensor) -> torch.Tensor:
        return (row - 1).square().mean()

    def step() -> None:
        for row in torch.zeros(40, 4):
            loss(row)

    [loop] = noted(step)["loops"]
    assert loop["line"].endswith(line_of(loss, 1))
    assert loop["first_line"].endswith(line_of(step, 2))
    assert (loop["runs"], loop["count"]) == (40, 120)


def test_targets_that_a_loss_ignores_are_counted_with_the_operators_on_all_scores() -> None:
    head = torch.nn.Linear(8, 50)

    def step() -> None:
        labels = torch.full((40,), -100)
        labels[:6] = torch.arange(6)
        functional.cross_entropy(head(torch.randn(40, 8)), labels).backward()  # type: ignore[no-untyped-call]

    [targets] = noted(step)["ignored_targets"]
    assert targets["line"].endswith(line_of(step, 3))
    assert (targets["classes"], targets["targets"], targets["ignored"]) == (50, 80, 68)
    assert {call[0] for call in targets["calls"]} >= {
        "aten::addmm",
        "aten::_log_softmax",
        "aten::nll_loss_forward",
        "aten::_log_softmax_backward_data",
        "aten::mm",
    }


def test_operators_that_extend_their_operands_are_noted_with_their_lines() -> None:
    left = torch.randn(32, 64, requires_grad=True)
    right, many = torch.randn(32, 64), torch.randn(32, 32, 64)

    def step() -> None:
        (left[:, None] - right[None]).square().sum(-1).sum().backward()  # type: ignore[no-untyped-call]
        torch.mul(left[:, None].expand(-1, 32, -1), right.expand(32, -1, -1))
        functional.cosine_similarity(left[:, None], right[None], dim=-1)
        many + right
        left[:8, None] * right
        left[:, None].expand(-1, 32, -1).clone()

    extended = noted(step)["extended"]
    by_line = {row["line"]: [call[0] for call in row["calls"]] for row in extended}
    assert {line.rpartition("/")[2]: set(names) for line, names in by_line.items()} == {
        line_of(step, 1): {"aten::sub"},
        line_of(step, 2): {"aten::mul"},
        line_of(step, 3): {"aten::div"},
    }
    [shapes] = [row["calls"][0][1] for row in extended if row["line"].endswith(line_of(step, 1))]
    assert shapes == [[32, 1, 64], [1, 32, 64]]


def test_elements_of_expanded_dimensions_are_in_memory_once() -> None:
    assert elements_in_memory(torch.zeros(4, 1, 8).expand(4, 16, 8)) == 32
    assert elements_in_memory(torch.zeros(4, 8)) == 32
    assert elements_in_memory(torch.zeros(0, 8)) == 0
    assert elements_in_memory(torch.tensor(1.0)) == 1
