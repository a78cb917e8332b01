"""What `trace_handler` writes: torch's traces, under torch's names, with the settings in them."""

import gc
import gzip
import inspect
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo as dynamo
import torch.distributed as group
from torch.profiler import (
    ProfilerActivity,
    profile,
    schedule,
    tensorboard_trace_handler,
)
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader, Dataset, TensorDataset

import stepscope
from stepscope.base.errors import UsageError
from stepscope.recording import TraceHandler, live_objects, trace_handler
from stepscope.recording.settings import COLLECTORS
from stepscope.storage import discover

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]

TWO_SPANS = schedule(wait=1, warmup=1, active=2, repeat=2)


@pytest.fixture(autouse=True)
def _nothing_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests of this process left alive is not found."""
    gc.collect()
    look = live_objects._live_by_class  # noqa: SLF001
    left = look(live_objects._kinds())  # noqa: SLF001

    def own(kinds: Mapping[str, tuple[type, ...]]) -> dict[str, tuple[Any, ...]]:
        hidden = {id(each) for objects in left.values() for each in objects}
        return {
            kind: tuple(each for each in objects if id(each) not in hidden)
            for kind, objects in look(kinds).items()
        }

    monkeypatch.setattr(live_objects, "_live_by_class", own)


class Net(torch.nn.Module):
    """A model of 8 × 4 + 4 parameters, half of which are frozen in no test but one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.linear(samples)
        return scores


def train(
    handler: Callable[[profile], object],
    steps: Any = TWO_SPANS,
    step_count: int = 9,
    **options: Any,
) -> None:
    """A loop that knows nothing of stepscope, but for the handler that it was given."""
    model = Net()
    loader = DataLoader(TensorDataset(torch.zeros(2 * step_count, 8)), batch_size=2, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    activities = [ProfilerActivity.CPU]
    with profile(
        activities=activities, schedule=steps, on_trace_ready=handler, **options
    ) as profiler:
        for (samples,) in loader:
            optimizer.zero_grad()
            model(samples).sum().backward()
            optimizer.step()
            profiler.step()


def traces(folder: Path) -> list[dict[str, Any]]:
    return [_read(path) for path in sorted(folder.iterdir())]


def _read(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    trace: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return trace


def settings_of(folder: Path) -> dict[str, Any]:
    (trace,) = traces(folder)
    settings: dict[str, Any] = trace["stepscope_recorder"]["settings"]
    return settings


def once(folder: Path, **arguments: Any) -> dict[str, Any]:
    """The settings of one span."""
    train(trace_handler(folder, **arguments), schedule(wait=0, warmup=1, active=2, repeat=1), 4)
    return settings_of(folder)


def test_it_takes_what_torchs_handler_takes() -> None:
    torchs = inspect.signature(tensorboard_trace_handler).parameters
    ours = inspect.signature(trace_handler).parameters
    assert [(p.name, p.default, p.kind) for p in list(ours.values())[: len(torchs)]] == [
        (p.name, p.default, p.kind) for p in torchs.values()
    ]


@pytest.mark.parametrize("use_gzip", [False, True])
def test_every_span_is_saved_with_the_settings(tmp_path: Path, *, use_gzip: bool) -> None:
    handler = stepscope.trace_handler(tmp_path, use_gzip=use_gzip)
    train(handler)
    assert handler.saved == sorted(tmp_path.iterdir())
    first, second = traces(tmp_path)
    for trace in (first, second):
        keys = ["schema", "recorder", "settings", "unrecorded_steps"]
        assert list(trace["stepscope_recorder"]) == keys
        assert trace["stepscope_recorder"]["recorder"] == stepscope.__version__
        assert trace["stepscope_recorder"]["settings"]["profiler"]["schedule"] == {
            "skip_first": 0, "wait": 1, "warmup": 1, "active": 2, "repeat": 2,
        }  # fmt: skip
        assert sum(e["name"].startswith("ProfilerStep#") for e in trace["traceEvents"]) == 2


def test_a_profiler_without_a_schedule_is_saved_at_its_end(tmp_path: Path) -> None:
    train(trace_handler(tmp_path), None)
    assert settings_of(tmp_path)["model"]["name"] == "Net"


def test_the_exporter_in_python_is_completed_too(tmp_path: Path) -> None:
    train(trace_handler(tmp_path, use_python_export=True), None)
    assert settings_of(tmp_path)["model"]["name"] == "Net"


def test_files_are_named_as_torch_names_them(tmp_path: Path) -> None:
    train(trace_handler(tmp_path))
    train(trace_handler(tmp_path, "trainer", use_gzip=True))
    host = f"{socket.gethostname()}_{os.getpid()}"
    found = discover.in_folder(str(tmp_path))
    assert [(file.worker, file.span) for file in found] == [
        *sorted([(host, "1"), (host, "2"), ("trainer", "1"), ("trainer", "2")])
    ]


def test_stepscope_reads_them(tmp_path: Path) -> None:
    train(trace_handler(tmp_path, use_gzip=True), record_shapes=True)
    run = stepscope.load(tmp_path)
    assert [worker.metadata["stepscope_recorder"]["schema"] for worker in run.workers] == [1, 1]
    assert not run.workers[0].is_synthetic


def test_what_the_loop_uses_is_found(tmp_path: Path) -> None:
    settings = once(tmp_path)
    assert settings["model"] == {
        "name": "Net", "parameter_count": 36, "trainable_parameter_count": 36,
        "device": "cpu", "training": True,
    }  # fmt: skip
    [optimizer], [loader] = settings["optimizers"], settings["dataloaders"]
    assert optimizer == {
        "name": "AdamW", "parameter_group_count": 1,
        "foreach": True, "fused": None, "capturable": False,
    }  # fmt: skip
    assert loader == {
        "batch_size": 2, "worker_count": 0, "pin_memory": False, "persistent_workers": False,
        "drop_last": True, "dataset_length": 8, "dataset": "TensorDataset",
        "sampler": "SequentialSampler", "is_in_use": True,
    }  # fmt: skip
    assert settings["precision"]["model_dtype_counts"] == {"float32": 36}
    assert settings["torch"]["version"] == torch.__version__
    assert settings["host"]["thread_count"] == torch.get_num_threads()
    assert settings["profiler"]["record_shapes"] is False
    assert settings["devices"] == [] or torch.cuda.is_available()
    assert "batch" not in settings


def test_what_is_given_goes_before_what_is_found(tmp_path: Path) -> None:
    model = torch.nn.Bilinear(3, 3, 3)
    loader = DataLoader(TensorDataset(torch.zeros(12, 1)), batch_size=6, num_workers=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    settings = once(
        tmp_path,
        model=model,
        dataloader=loader,
        optimizer=[optimizer],
        batch_size=24,
        settings={"precision": {"default_dtype": "bfloat16"}, "framework": {"name": "ours"}},
    )
    assert settings["model"]["name"] == "Bilinear"
    assert [each["batch_size"] for each in settings["dataloaders"]] == [6]
    assert [each["name"] for each in settings["optimizers"]] == ["SGD"]
    assert settings["batch"] == {"sample_count": 24}
    assert settings["precision"]["default_dtype"] == "bfloat16"
    assert settings["precision"]["float32_matmul"] == "highest"
    assert settings["framework"] == {"name": "ours"}


def test_parts_can_be_left_out(tmp_path: Path) -> None:
    settings = once(tmp_path, leave_out=["environment", "model", "host"], is_searched=False)
    assert not {"environment", "model", "host", "dataloaders", "optimizers"} & set(settings)
    assert "torch" in settings


def test_a_subject_that_is_none_is_refused_before_the_training(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"leave_out=\['hosts'\]: the subjects are torch, host"):
        trace_handler(tmp_path, leave_out=["hosts"])


def test_no_secret_of_the_environment_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "NCCL_SECRET", "OMP_TOKEN"):
        monkeypatch.setenv(name, "tell-nobody")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    train(trace_handler(tmp_path), None)
    (path,) = tmp_path.iterdir()
    assert "tell-nobody" not in path.read_text()
    assert settings_of(tmp_path)["environment"]["OMP_NUM_THREADS"] == "3"


class Sizeless(Dataset[torch.Tensor]):
    """Data whose length is known to nobody; a service that is down, say."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(8)

    def __len__(self) -> int:
        message = "the service is down"
        raise ConnectionError(message)


def test_a_field_that_cannot_be_asked_costs_itself_alone(tmp_path: Path) -> None:
    sampler = torch.utils.data.RandomSampler(range(8))
    loader = DataLoader(Sizeless(), batch_size=4, sampler=sampler)
    (told,) = once(tmp_path, dataloader=loader)["dataloaders"]
    assert told["batch_size"] == 4
    assert "dataset_length" not in told


def test_a_subject_that_fails_is_named_and_costs_itself_alone(tmp_path: Path) -> None:
    train(trace_handler(tmp_path, optimizer=object()), None)
    (trace,) = traces(tmp_path)
    assert trace["stepscope_recorder"]["failed"] == ["optimizers"]
    assert set(trace["stepscope_recorder"]["settings"]) >= {
        "torch",
        "host",
        "precision",
        "profiler",
    }


def test_all_collectors_are_told_of_in_the_help() -> None:
    assert trace_handler.__doc__
    assert [name for name in COLLECTORS if f"`{name}`" not in trace_handler.__doc__] == []


@pytest.fixture
def ranks() -> Iterator[None]:
    """A process group of sixteen of which this process is the third; nothing is sent."""
    group.init_process_group("fake", rank=3, world_size=16, store=FakeStore())
    yield
    group.destroy_process_group()


@pytest.mark.usefixtures("ranks")
def test_in_a_process_group_files_are_in_the_order_of_ranks(tmp_path: Path) -> None:
    settings = once(tmp_path)
    (file,) = discover.in_folder(str(tmp_path))
    assert file.worker == f"rank03_{socket.gethostname()}_{os.getpid()}"
    assert settings["distributed"] == {
        "backend": "fake", "world_size": 16, "rank": 3, "strategy": None,
    }  # fmt: skip


def test_how_ddp_is_set_is_told(tmp_path: Path) -> None:
    group.init_process_group("gloo", rank=0, world_size=1, store=group.HashStore())  # type: ignore[attr-defined]
    try:
        wrapped = torch.nn.parallel.DistributedDataParallel(
            Net(), bucket_cap_mb=5, find_unused_parameters=True
        )
        settings = once(tmp_path, model=wrapped)
    finally:
        group.destroy_process_group()
    assert settings["distributed"] == {
        "backend": "gloo", "world_size": 1, "rank": 0, "strategy": "DDP", "bucket_cap_mb": 5.0,
        "broadcast_buffers": True, "find_unused_parameters": True, "gradient_as_bucket_view": False,
        "static_graph": False,
    }  # fmt: skip
    assert settings["model"]["name"] == "Net"


def test_what_was_compiled_is_told(tmp_path: Path) -> None:
    dynamo.reset()
    dynamo.utils.counters.clear()
    dynamo.utils.clear_compilation_metrics()
    model = Net()
    compiled = torch.compile(model, backend="eager")
    handler = trace_handler(tmp_path, leave_out=set(COLLECTORS) - {"compile"})
    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=handler):
        for sample_count in (2, 3, 4):  # the second is compiled again, for any count
            compiled(torch.zeros(sample_count, 8))
    assert settings_of(tmp_path)["compile"] == {
        "is_compiled": True, "backend": "eager",
        "frame_count": 2, "recompile_count": 1, "graph_break_count": 0,
    }  # fmt: skip


def test_a_light_import_brings_nothing_heavy() -> None:
    code = (
        "import sys, stepscope; stepscope.trace_handler; stepscope.schedule_for(100);"
        "print([m for m in ('torch', 'numpy', 'pandas', 'flask', 'msgspec') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_handler_says_what_it_wrote(tmp_path: Path) -> None:
    handler = TraceHandler(tmp_path, name="one", collect=lambda _: {"schema": 1})
    train(handler, None)
    assert [path.parent for path in handler.saved] == [tmp_path]
    assert traces(tmp_path)[0]["stepscope_recorder"] == {
        "schema": 1,
        "unrecorded_steps": {"count": 0},
    }
