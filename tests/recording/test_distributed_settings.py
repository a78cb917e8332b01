"""What is told of DDP, FSDP and `fully_shard`: real wrappers, on one process and on the CPU."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as group
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    BackwardPrefetch,
    CPUOffload,
    CPUOffloadPolicy,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from loading import trace_of
from logs import ROWS
from stepscope.analyses.settings.recorded_settings import DistributedSettings, recorded_settings
from stepscope.recording.live_objects import Given
from stepscope.recording.settings import COLLECTORS, collect

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore:`broadcast_buffers` is deprecated:FutureWarning"),
]


@pytest.fixture
def alone() -> Iterator[None]:
    """A process group of one."""
    group.init_process_group("gloo", rank=0, world_size=1, store=group.HashStore())  # type: ignore[attr-defined]
    yield
    group.destroy_process_group()


@pytest.fixture
def ranks() -> Iterator[None]:
    """A process group of eight of which this process is the first; nothing is sent."""
    group.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    yield
    group.destroy_process_group()


def told(model: nn.Module) -> dict[str, Any]:
    """What is written of the wrapper; of the process group other tests tell."""
    others = set(COLLECTORS) - {"distributed"}
    collected = collect(None, Given(model=model), leave_out=others, is_searched=False)
    assert "failed" not in collected
    settings = collected["settings"]["distributed"]
    assert_understood(collected)
    return {
        name: settings[name] for name in settings if name not in ("backend", "world_size", "rank")
    }


def assert_understood(collected: dict[str, Any]) -> None:
    """What is written is what advice reads, field by field."""
    read = recorded_settings(trace_of(ROWS, stepscope_recorder=collected))
    assert read.lost == ()
    written = collected["settings"]["distributed"]
    assert set(written) <= set(DistributedSettings.__dataclass_fields__)
    assert {name: getattr(read.distributed, name) for name in written} == written


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))


@pytest.mark.usefixtures("alone")
def test_ddp_tells_its_defaults() -> None:
    assert told(DistributedDataParallel(net())) == {
        "strategy": "DDP", "bucket_cap_mb": 25.0, "broadcast_buffers": True,
        "find_unused_parameters": False, "gradient_as_bucket_view": False, "static_graph": False,
    }  # fmt: skip


@pytest.mark.usefixtures("alone")
def test_ddp_tells_what_was_asked_for() -> None:
    wrapped = DistributedDataParallel(
        net(), bucket_cap_mb=5, broadcast_buffers=False, gradient_as_bucket_view=True,
        static_graph=True,
    )  # fmt: skip
    assert told(wrapped) == {
        "strategy": "DDP", "bucket_cap_mb": 5.0, "broadcast_buffers": False,
        "find_unused_parameters": False, "gradient_as_bucket_view": True, "static_graph": True,
    }  # fmt: skip


def fully_sharded(**options: Any) -> FullyShardedDataParallel:
    return FullyShardedDataParallel(net(), device_id=torch.device("cpu"), **options)


@pytest.mark.usefixtures("ranks")
def test_fsdp_tells_its_defaults() -> None:
    assert told(fully_sharded()) == {
        "strategy": "FSDP", "sharding_strategy": "FULL_SHARD", "backward_prefetch": "BACKWARD_PRE",
        "forward_prefetch": False, "limit_all_gathers": True, "cpu_offload": False,
    }  # fmt: skip


@pytest.mark.usefixtures("ranks")
def test_fsdp_tells_what_was_asked_for() -> None:
    wrapped = fully_sharded(
        sharding_strategy=ShardingStrategy.SHARD_GRAD_OP,
        backward_prefetch=BackwardPrefetch.BACKWARD_POST,
        forward_prefetch=True,
        limit_all_gathers=False,
        cpu_offload=CPUOffload(offload_params=True),
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, buffer_dtype=torch.float16),
    )
    assert told(wrapped) == {
        "strategy": "FSDP", "sharding_strategy": "SHARD_GRAD_OP",
        "backward_prefetch": "BACKWARD_POST", "forward_prefetch": True, "limit_all_gathers": False,
        "cpu_offload": True, "param_dtype": "bfloat16", "buffer_dtype": "float16",
    }  # fmt: skip


@pytest.mark.usefixtures("ranks")
def test_fsdp_without_prefetching_is_told_from_what_is_not_known() -> None:
    assert told(fully_sharded(backward_prefetch=None))["backward_prefetch"] == "NONE"


@pytest.mark.usefixtures("alone")
def test_fully_shard_tells_its_defaults() -> None:
    model = net()
    fully_shard(model[0])
    fully_shard(model)
    model(torch.zeros(2, 8)).sum().backward()  # the outermost keeps its parameters from now on
    assert told(model) == {
        "strategy": "FSDP2", "mesh_shape": "1", "reshard_after_forward": True,
        "cpu_offload": False, "forward_prefetch": False,
    }  # fmt: skip


@pytest.mark.usefixtures("alone")
def test_one_unit_keeps_its_parameters_by_itself() -> None:
    model = net()
    fully_shard(model)
    assert told(model)["reshard_after_forward"] is True
    model(torch.zeros(2, 8)).sum().backward()
    assert told(model)["reshard_after_forward"] is False


@pytest.mark.usefixtures("ranks")
def test_fully_shard_tells_what_was_asked_for() -> None:
    model = net()
    options: dict[str, Any] = {
        "mesh": init_device_mesh("cpu", (2, 4), mesh_dim_names=("copies", "parts")),
        "reshard_after_forward": False,
        "offload_policy": CPUOffloadPolicy(pin_memory=False),
        "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32),
    }
    units = [fully_shard(unit, **options) for unit in (model[0], model[1], model)]
    units[0].set_modules_to_forward_prefetch([units[1]])
    assert told(model) == {
        "strategy": "FSDP2", "mesh_shape": "2x4", "reshard_after_forward": False,
        "cpu_offload": True, "forward_prefetch": True,
        "param_dtype": "bfloat16", "reduce_dtype": "float32",
    }  # fmt: skip


@pytest.mark.usefixtures("ranks")
def test_units_that_differ_tell_only_what_they_have_in_common() -> None:
    model = net()
    fully_shard(model[0], mp_policy=MixedPrecisionPolicy(torch.bfloat16))
    fully_shard(model[1], reshard_after_forward=False)
    assert told(model) == {
        "strategy": "FSDP2", "mesh_shape": "8", "cpu_offload": False, "forward_prefetch": False,
    }  # fmt: skip


@pytest.mark.usefixtures("ranks")
def test_a_torch_that_keeps_it_elsewhere_costs_these_fields_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = net()
    fully_shard(model)
    monkeypatch.delattr(torch.distributed.fsdp.FSDPModule, "_get_fsdp_state")
    assert told(model) == {"strategy": "FSDP2", "mesh_shape": "8"}
