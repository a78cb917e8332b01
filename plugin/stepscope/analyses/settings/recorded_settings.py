"""Settings of the run, as stepscope's trace handler wrote them into the trace.

    "stepscope_recorder": {"schema": 1, "recorder": "0.2.0", "settings": {"dataloaders": [{…}], …}}

Every setting is optional: None, empty or absent means unknown, never "off". Traces are untrusted:
values of the wrong kind are dropped and listed in `lost`. Newer schemas are read as far as they are
understood.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

from stepscope.analyses.settings.setting_kinds import (
    MOST_ITEMS,
    as_count,
    as_names,
    as_text,
    counts,
    data_type,
    flag,
    names,
    number,
    quantity,
    release,
    setting_of,
    text,
    variables,
)
from stepscope.analyses.settings.user_metadata import metadata_mapping
from stepscope.model.trace import Trace, computed, whole_number

KEY = "stepscope_recorder"
SCHEMA = 1
"""The latest supported schema."""
MOST_LOST = 20
RANKS_ON_THIS_HOST = "LOCAL_WORLD_SIZE"
"""torchrun's variable."""
RECORDED = "recorded by the trace handler"
"""Advice's phrase for the source of a setting."""
SubjectT = TypeVar("SubjectT")
ValueT = TypeVar("ValueT")


def _subjects(of: type[Any]) -> Any:  # noqa: ANN401 (as `dataclasses.field`)
    return field(default=(), metadata={"subjects": of})


@dataclass(frozen=True, kw_only=True)
class TorchSettings:
    """PyTorch and what it was built for."""

    version: str | None = text("PyTorch")
    cuda: str | None = release("CUDA")
    cudnn: str | None = release("cuDNN")
    hip: str | None = release("HIP")
    driver: str | None = release("Driver")
    git: str | None = text("PyTorch commit")


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """The machine's processors and memory."""

    cpu_count: int | None = number("CPUs", least=1)
    usable_cpu_count: int | None = number("Usable CPUs", least=1)
    """By the process's affinity and its container's limit."""
    thread_count: int | None = number("Intra-op threads", least=1)
    interop_thread_count: int | None = number("Inter-op threads", least=1)
    memory_bytes: int | None = number("Host memory", unit="bytes", least=1)
    platform: str | None = text("Platform")
    python: str | None = release("Python")
    cpu_capabilities: tuple[str, ...] | None = names("CPU instructions")
    """The supported ones of `torch.cpu.get_capabilities()`; None: unknown."""


@dataclass(frozen=True, kw_only=True)
class DeviceSettings:
    """A device that torch sees, used or not."""

    index: int | None = number("Device index")
    name: str | None = text("Device")
    memory_bytes: int | None = number("Device memory", unit="bytes", least=1)
    capability: str | None = release("Compute capability")


@dataclass(frozen=True, kw_only=True)
class LoaderSettings:
    """A DataLoader that was iterated."""

    batch_size: int | None = number("Batch size", least=1)
    worker_count: int | None = number("Workers")
    pin_memory: bool | None = flag("Pinned memory")
    persistent_workers: bool | None = flag("Persistent workers")
    prefetch_factor: int | None = number("Prefetched batches per worker", least=1)
    drop_last: bool | None = flag("Drop last batch")
    dataset_length: int | None = number("Samples")
    dataset: str | None = text("Dataset")
    sampler: str | None = text("Sampler")
    multiprocessing_context: str | None = text("Worker start method")
    is_in_use: bool | None = flag("In use during the trace")


@dataclass(frozen=True, kw_only=True)
class AutocastSettings:
    """Autocast within the step."""

    enabled: bool | None = flag("Autocast")
    device: str | None = text("Autocast device")
    dtype: str | None = data_type("Autocast type")


@dataclass(frozen=True, kw_only=True)
class PrecisionSettings:
    """Data types of the computation."""

    default_dtype: str | None = data_type("Default type")
    autocast: AutocastSettings = AutocastSettings()
    float32_matmul: str | None = text("Float32 matmul precision")
    tf32_matmul: bool | None = flag("TF32 in matmul")
    tf32_cudnn: bool | None = flag("TF32 in convolutions")
    model_dtype_counts: Mapping[str, int] = counts("Parameters of type")


@dataclass(frozen=True, kw_only=True)
class CudnnSettings:
    """The convolution library."""

    benchmark: bool | None = flag("Benchmark")
    deterministic: bool | None = flag("Deterministic")
    enabled: bool | None = flag("Enabled")


@dataclass(frozen=True, kw_only=True)
class AllocatorSettings:
    """The device's allocator."""

    conf: str | None = text("Allocator configuration")
    backend: str | None = text("Allocator")
    expandable_segments: bool | None = flag("Expandable segments")


@dataclass(frozen=True, kw_only=True)
class CompileSettings:
    """Settings and counts of torch.compile."""

    is_compiled: bool | None = flag("torch.compile")
    mode: str | None = text("Compile mode")
    backend: str | None = text("Compile backend")
    frame_count: int | None = number("Frames compiled")
    recompile_count: int | None = number("Recompilations")
    graph_break_count: int | None = number("Graph breaks")


@dataclass(frozen=True, kw_only=True)
class DistributedSettings:
    """Settings of distributed training."""

    backend: str | None = text("Backend")
    world_size: int | None = number("World size", least=1)
    rank: int | None = number("Rank")
    local_rank: int | None = number("Local rank")
    strategy: str | None = text("Strategy")
    bucket_cap_mb: float | None = quantity("Bucket size (MiB)")
    broadcast_buffers: bool | None = flag("Broadcast buffers")
    find_unused_parameters: bool | None = flag("Find unused parameters")
    gradient_as_bucket_view: bool | None = flag("Gradients as bucket views")
    static_graph: bool | None = flag("Static graph")
    sharding_strategy: str | None = text("Sharding")
    mesh_shape: str | None = text("Mesh")
    reshard_after_forward: bool | None = flag("Reshard after forward")
    backward_prefetch: str | None = text("Backward prefetch")
    forward_prefetch: bool | None = flag("Forward prefetch")
    limit_all_gathers: bool | None = flag("Limit all-gathers")
    cpu_offload: bool | None = flag("CPU offload")
    param_dtype: str | None = data_type("Parameter type in computation")
    reduce_dtype: str | None = data_type("Gradient reduction type")
    buffer_dtype: str | None = data_type("Buffer type in computation")


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """An optimizer; torch chooses where `foreach` and `fused` are None."""

    name: str | None = text("Class")
    foreach: bool | None = flag("foreach")
    fused: bool | None = flag("fused")
    capturable: bool | None = flag("capturable")
    parameter_group_count: int | None = number("Parameter groups")


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The model."""

    name: str | None = text("Class")
    parameter_count: int | None = number("Parameters")
    trainable_parameter_count: int | None = number("Trainable parameters")
    device: str | None = text("Model device")
    training: bool | None = flag("Training mode")

    @property
    def is_on_host(self) -> bool | None:
        """True if its parameters are on the CPU; None: unknown."""
        return self.device.startswith("cpu") if self.device else None


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings:
    """The profiler's schedule, in steps."""

    skip_first: int | None = number("Skip first")
    wait: int | None = number("Wait")
    warmup: int | None = number("Warm-up")
    active: int | None = number("Active")
    repeat: int | None = number("Repeat")


@dataclass(frozen=True, kw_only=True)
class ProfilerSettings:
    """Settings of the profiler."""

    record_shapes: bool | None = flag("Shapes")
    with_stack: bool | None = flag("Stacks")
    profile_memory: bool | None = flag("Memory")
    with_modules: bool | None = flag("Modules")
    with_flops: bool | None = flag("FLOPs")
    schedule: ScheduleSettings = ScheduleSettings()


@dataclass(frozen=True, kw_only=True)
class FrameworkSettings:
    """Settings of the training framework, in its terms."""

    name: str | None = text("Framework")
    version: str | None = release("Framework version")
    accumulated_batch_count: int | None = number("Batches per optimizer step", least=1)
    precision: str | None = text("Framework precision")
    strategy: str | None = text("Framework strategy")
    max_step_count: int | None = number("Total steps")
    gradient_checkpointing: bool | None = flag("Gradient checkpointing")


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """A step's batch."""

    sample_count: int | None = number("Samples per step", least=1)


@dataclass(frozen=True, kw_only=True)
class RecordedSettings:
    """Settings that the trace handler wrote."""

    schema: int | None = None
    """None: stepscope's trace handler did not write the file."""
    recorder: str = ""
    """Its version."""
    failed: tuple[str, ...] = ()
    """Subjects that the trace handler could not read."""
    lost: tuple[str, ...] = ()
    """Settings that are not understood, such as `dataloaders[0].batch_size`; at most 20."""
    torch: TorchSettings = TorchSettings()
    host: HostSettings = HostSettings()
    devices: tuple[DeviceSettings, ...] = _subjects(DeviceSettings)
    dataloaders: tuple[LoaderSettings, ...] = _subjects(LoaderSettings)
    batch: BatchSettings = BatchSettings()
    model: ModelSettings = ModelSettings()
    optimizers: tuple[OptimizerSettings, ...] = _subjects(OptimizerSettings)
    precision: PrecisionSettings = PrecisionSettings()
    compile: CompileSettings = CompileSettings()
    cudnn: CudnnSettings = CudnnSettings()
    allocator: AllocatorSettings = AllocatorSettings()
    distributed: DistributedSettings = DistributedSettings()
    framework: FrameworkSettings = FrameworkSettings()
    profiler: ProfilerSettings = ProfilerSettings()
    environment: Mapping[str, str] = variables("Environment")

    @property
    def ranks_on_this_host(self) -> int:
        """Number of ranks that share the host's CPUs, by the launcher's variable; else 1."""
        return max(1, whole_number(self.environment.get(RANKS_ON_THIS_HOST)) or 1)

    @property
    def is_newer(self) -> bool:
        """True if a newer schema was written than this version supports."""
        return self.schema is not None and self.schema > SCHEMA


@computed
def recorded_settings(trace: Trace) -> RecordedSettings:
    """Return the settings that the trace handler wrote; empty without one."""
    mark = metadata_mapping(trace, KEY)
    if "settings" not in mark:
        return RecordedSettings()
    schema = as_count(mark.get("schema")) or SCHEMA
    lost = _Lost(paths=[], has_unknown_names=schema > SCHEMA)
    settings = _read(RecordedSettings, mark["settings"], "", lost)
    subjects = {
        subject.name: getattr(settings, subject.name) for subject in _settings_of(RecordedSettings)
    }
    return RecordedSettings(
        schema=schema,
        recorder=as_text(mark.get("recorder")) or "",
        failed=as_names(mark.get("failed")) or (),
        lost=tuple(lost.paths[:MOST_LOST]),
        **subjects,
    )


@dataclass(frozen=True, kw_only=True)
class _Lost:
    paths: list[str]
    has_unknown_names: bool
    """Whether unknown names count, as for newer schemas."""

    def add(self, path: str) -> None:
        """Add a setting, up to `MOST_LOST`."""
        if len(self.paths) < MOST_LOST:
            self.paths.append(as_text(path) or "settings")


def usable_cpus(trace: Trace) -> int | None:
    """Return the number of CPUs for this process: its part, where several ranks share a host."""
    settings = recorded_settings(trace)
    count = settings.host.usable_cpu_count or settings.host.cpu_count
    return None if count is None else max(1, count // settings.ranks_on_this_host)


def common_value(values: Iterable[ValueT | None]) -> ValueT | None:
    """Return the value that all have in common; None where one is None, or two differ."""
    listed = list(values)
    first = listed[0] if listed else None
    return first if all(value == first for value in listed) else None


def used_loaders(settings: RecordedSettings) -> tuple[LoaderSettings, ...]:
    """Return the loaders in use when the settings were recorded; all loaders if unknown."""
    in_use = tuple(loader for loader in settings.dataloaders if loader.is_in_use)
    return in_use or settings.dataloaders


def _settings_of(kind: type[Any]) -> Iterable[Any]:
    return (
        setting for setting in fields(kind) if setting.metadata or is_dataclass(setting.default)
    )


def _read(kind: type[SubjectT], value: object, path: str, lost: _Lost) -> SubjectT:
    """Return a subject's settings; add those that are not understood to `lost`."""
    if not isinstance(value, Mapping):
        if value is not None:
            lost.add(path)
        return kind()
    inside = f"{path}." if path else ""
    settings = {
        setting.name: _setting(setting, value[setting.name], f"{inside}{setting.name}", lost)
        for setting in _settings_of(kind)
        if value.get(setting.name) is not None
    }
    if lost.has_unknown_names:
        names = {setting.name for setting in _settings_of(kind)}
        for name in list(value)[:MOST_ITEMS]:
            if name not in names:
                lost.add(f"{inside}{name}")
    return kind(**{name: setting for name, setting in settings.items() if setting is not None})


def _setting(setting: Any, value: object, path: str, lost: _Lost) -> Any:  # noqa: ANN401
    if is_dataclass(setting.default):
        return _read(type(setting.default), value, path, lost)
    if "subjects" in setting.metadata:
        return _read_all(setting.metadata["subjects"], value, path, lost)
    reader = setting_of(setting)
    result = reader.read(value) if reader else None
    if result is None:
        lost.add(path)
    return result


def _read_all(kind: type[SubjectT], value: object, path: str, lost: _Lost) -> tuple[SubjectT, ...]:
    if not isinstance(value, list):
        lost.add(path)
        return ()
    if len(value) > MOST_ITEMS:
        lost.add(f"{path}[{MOST_ITEMS}]")
    read = enumerate(value[:MOST_ITEMS])
    return tuple(_read(kind, item, f"{path}[{index}]", lost) for index, item in read)
