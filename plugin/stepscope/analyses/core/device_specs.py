"""Peak arithmetic rates and memory bandwidths of devices: the makers' data sheets, and measured.

Rates are at the data sheet's clock (NVIDIA's boost clock, AMD's peak engine clock), on the fastest
unit for the type, and for dense arithmetic: half the figure where a sheet gives only that with
structured sparsity. 16-bit and 8-bit floats accumulate in float32, torch's default; GeForce is
twice as fast with 16-bit accumulation. A device that clocks above its sheet may exceed its peak by
some percent.

No product of any shape reaches the sheet's rate on most devices. The measured peak of a type is the
best rate of a sweep of shapes of matrix products (`MEASURED_SOURCE`), with torch as it was then.

Devices are identified by their exact name in `deviceProperties` and their number of
multiprocessors: AMD's may be partitioned and keep their name. Unlisted devices have no peak.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.memory_peak import device_properties
from stepscope.model.trace import Trace, whole_number

TYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "float8", "int8")
"""torch's names, `tf32`, and `float8` for all 8-bit floats: the columns of `_TABLE`."""
SOURCES: Mapping[str, str] = MappingProxyType(
    {
        # data sheets, product pages and architecture white papers
        "v100": "https://images.nvidia.com/content/technologies/volta/pdf/"
        "volta-v100-datasheet-update-us-1165301-r5.pdf",
        "t4": "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/"
        "t4-tensor-core-datasheet-951643.pdf",
        "a100-40": "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
        "a100-80gb-datasheet-update-nvidia-us-1521051-r2-web.pdf",
        "a100": "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
        "nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf",
        "a30": "https://www.nvidia.com/content/dam/en-zz/Solutions/data-center/products/a30-gpu/pdf/"
        "a30-datasheet.pdf",
        "a10": "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a10/pdf/"
        "a10-datasheet.pdf",
        "a40": "https://images.nvidia.com/content/Solutions/data-center/a40/"
        "nvidia-a40-datasheet.pdf",
        "l4": "https://resources.nvidia.com/en-us-data-center-overview/l4-gpu-datasheet",
        "l40s": "https://resources.nvidia.com/en-us-l40s/l40s-datasheet-28413",
        "h100": "https://resources.nvidia.com/en-us-gpu-resources/h100-datasheet-24306",
        "h100-pcie": "https://nvdam.widen.net/content/vuzumiozpb/original/"
        "h100-datasheet-2287922.pdf",
        "h200": "https://www.nvidia.com/en-us/data-center/h200/",
        "gh200": "https://www.nvidia.com/en-us/data-center/grace-hopper-superchip/",
        "blackwell": "https://resources.nvidia.com/en-us-blackwell-architecture/datasheet",
        "ga102": "https://www.nvidia.com/content/PDF/"
        "nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf",
        "ada": "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/"
        "nvidia-ada-gpu-architecture.pdf",
        "gb202": "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/"
        "nvidia-rtx-blackwell-gpu-architecture.pdf",
        "mi210": "https://www.amd.com/content/dam/amd/en/documents/instinct-business-docs/product-briefs/"
        "instinct-mi210-brochure.pdf",
        "mi250": "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250.html",
        "mi250x": "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html",
        "mi300": "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/"
        "amd-instinct-mi300x-data-sheet.pdf",
        "mi300a": "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/"
        "amd-instinct-mi300a-data-sheet.pdf",
        "mi325": "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/product-briefs/"
        "instinct-mi325x-datasheet.pdf",
        "mi350": "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/product-briefs/"
        "amd-instinct-mi350x-gpu-brochure.pdf",
        "mi355": "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/product-briefs/"
        "amd-instinct-mi355x-gpu-brochure.pdf",
    }
)
# Operations in 10^12 per second. SMs are also AMD's CUs (`numSms`). MI250 and MI250X are two
# devices each, of half the package's figures; a GB200 is one of the superchip's two. A100-PG509-200
# is the board of A100-SXM4-40GB (PCI id 20B0). MI350X: units and clock give 2306.9, AMD 2309.6.
_TABLE = """
name                     SMs   GB/s   f64   f32   tf32    f16   bf16     f8     i8 source
Tesla V100-SXM2-16GB      80    900   7.8  15.7      -    125      -      -      - v100
Tesla V100-SXM2-32GB      80    900   7.8  15.7      -    125      -      -      - v100
Tesla V100-PCIE-16GB      80    900     7    14      -    112      -      -      - v100
Tesla V100-PCIE-32GB      80    900     7    14      -    112      -      -      - v100
Tesla V100S-PCIE-32GB     80   1134   8.2  16.4      -    130      -      -      - v100
Tesla T4                  40    320     -   8.1      -     65      -      -    130 t4
NVIDIA A100-SXM4-40GB    108   1555  19.5  19.5    156    312    312      -    624 a100-40
A100-SXM4-40GB           108   1555  19.5  19.5    156    312    312      -    624 a100-40
NVIDIA A100-PG509-200    108   1555  19.5  19.5    156    312    312      -    624 a100-40
NVIDIA A100-PCIE-40GB    108   1555  19.5  19.5    156    312    312      -    624 a100-40
A100-PCIE-40GB           108   1555  19.5  19.5    156    312    312      -    624 a100-40
NVIDIA A100-SXM4-80GB    108   2039  19.5  19.5    156    312    312      -    624 a100
A100-SXM4-80GB           108   2039  19.5  19.5    156    312    312      -    624 a100
NVIDIA A100 80GB PCIe    108   1935  19.5  19.5    156    312    312      -    624 a100
NVIDIA A30                56    933  10.3  10.3     82    165    165      -    330 a30
NVIDIA A10                72    600     -  31.2   62.5    125    125      -    250 a10
NVIDIA A40                84    696     -  37.4   74.8  149.7  149.7      -  299.3 a40
NVIDIA L4                 58    300     -  30.3     60    121    121  242.5  242.5 l4
NVIDIA L40S              142    864     -  91.6    183 362.05 362.05    733    733 l40s
NVIDIA H100 80GB HBM3    132   3350    67    67  494.5  989.5  989.5   1979   1979 h100
NVIDIA H100 NVL          132   3900    60    60  417.5  835.5  835.5 1670.5 1670.5 h100
NVIDIA H100 PCIe         114   2000    51    51    378  756.5  756.5   1513   1513 h100-pcie
NVIDIA H200              132   4800    67    67  494.5  989.5  989.5   1979   1979 h200
NVIDIA H200 NVL          132   4800    60    60  417.5  835.5  835.5 1670.5 1670.5 h200
NVIDIA GH200 480GB       132   4000    67    67  494.5  989.5  989.5   1979   1979 gh200
NVIDIA B200              148   7700    37    75   1100   2250   2250   4500   4500 blackwell
NVIDIA GB200             152   8000    40    80   1250   2500   2500   5000   5000 blackwell
NVIDIA GeForce RTX 3090   82    936     -  35.6   35.6     71     71      -    284 ga102
GeForce RTX 3090          82    936     -  35.6   35.6     71     71      -    284 ga102
NVIDIA GeForce RTX 4090  128   1008     -  82.6   82.6  165.2  165.2  330.3  660.6 ada
NVIDIA GeForce RTX 5090  170   1792     - 104.8  104.8  209.5  209.5    419    838 gb202
AMD Instinct MI210       104 1638.4  45.3  45.3      -    181    181      -    181 mi210
AMD Instinct MI250       104 1638.4 45.25 45.25      - 181.05 181.05      - 181.05 mi250
AMD Instinct MI250X      110 1638.4 47.85 47.85      -  191.5  191.5      -  191.5 mi250x
AMD Instinct MI300X      304   5325 163.4 163.4  653.7 1307.4 1307.4 2614.9 2614.9 mi300
AMD Instinct MI300X VF   304   5325 163.4 163.4  653.7 1307.4 1307.4 2614.9 2614.9 mi300
AMD Instinct MI300A      228   5325 122.6 122.6  490.3  980.6  980.6 1961.2 1961.2 mi300a
AMD Instinct MI325X      304   6000 163.4 163.4  653.7 1307.4 1307.4 2614.9 2614.9 mi325
AMD Instinct MI350X      256   8000  72.1 144.2      - 2309.6 2309.6   4614   4614 mi350
AMD Instinct MI355X      256   8000  78.6 157.3      - 2516.6 2516.6 5033.2 5033.2 mi355
"""

MEASURED_SOURCES: Mapping[str, str] = MappingProxyType(
    {
        # best rates of a sweep of shapes by mamf-finder.py, read in November 2026
        "mamf": "https://github.com/stas00/ml-engineering/tree/master/compute/accelerator#maximum-"
        "achievable-matmul-flops-comparison-table",
        "rates": "the best of two to four shapes of sample_logs/record/device_rates.py, "
        "November 2026",
    }
)
# Operations in 10^12 per second. H200 has the compute units of H100 SXM. The GH200 that was
# measured has other memory than the one that is listed.
MEASURED = """
NVIDIA A100-SXM4-40GB  bfloat16  271.2  1024x10240x5120   2.6.0+cu126 mamf
A100-SXM4-40GB         bfloat16  271.2  1024x10240x5120   2.6.0+cu126 mamf
NVIDIA A100-PG509-200  bfloat16  271.2  1024x10240x5120   2.6.0+cu126 mamf
NVIDIA A100-SXM4-80GB  bfloat16  271.2  1024x10240x5120   2.6.0+cu126 mamf
A100-SXM4-80GB         bfloat16  271.2  1024x10240x5120   2.6.0+cu126 mamf
NVIDIA A100-PCIE-40GB  bfloat16  252.9  2048x5120x6144    2.5.1+cu124 mamf
A100-PCIE-40GB         bfloat16  252.9  2048x5120x6144    2.5.1+cu124 mamf
NVIDIA A100 80GB PCIe  bfloat16  252.9  2048x5120x6144    2.5.1+cu124 mamf
NVIDIA H100 80GB HBM3  bfloat16  794.5  2048x2048x13312   2.7.0+cu126 mamf
NVIDIA H100 80GB HBM3  float8   1402.6  1024x9216x14336   2.7.0 mamf
NVIDIA H200            bfloat16  794.5  2048x2048x13312   2.7.0+cu126 mamf
NVIDIA H200            float8   1453.4  1280x4096x12032   2.7.1 mamf
NVIDIA H200            tf32      387.1  2048x2048x13312   2.11.0+cu130 rates
NVIDIA H200            float16   750.3  8192x8192x8192    2.11.0+cu130 rates
NVIDIA H200            float32    49.9  2048x2048x13312   2.11.0+cu130 rates
NVIDIA H200            float64    61.2  4096x4096x4096    2.11.0+cu130 rates
NVIDIA B200            bfloat16 1745    1792x16128x3072   2.7.1+cu128 mamf
NVIDIA B200            float8   3432.5  -                 2.7.1 mamf
NVIDIA GB200           bfloat16 1822    4096x9728x2048    2.10 mamf
NVIDIA GB200           float8   3615.6  19456x5120x1536   2.10 mamf
AMD Instinct MI300X    bfloat16  668.4  10240x15360x8192  2.5.1 mamf
AMD Instinct MI300X VF bfloat16  668.4  10240x15360x8192  2.5.1 mamf
AMD Instinct MI325X    bfloat16  784.9  13312x10240x8192  2.6.0 mamf
AMD Instinct MI355X    bfloat16 1565    12288x8192x8192   2.8.0 mamf
"""
# Bytes read and written in 10^9 per second, by copies of 4 GiB in `device_rates.py`.
MEASURED_MEMORY: Mapping[str, float] = MappingProxyType({"NVIDIA H200": 4271.8})


@dataclass(frozen=True, kw_only=True)
class MeasuredPeak:
    """The best measured rate of matrix products of one type on a device."""

    flops_per_second: float
    shape: str
    """Of the product that reached it: `MxNxK`; `-`: not published."""
    torch_version: str
    source: str
    """Who measured it."""


@dataclass(frozen=True, kw_only=True)
class DeviceSpec:
    """Peak figures of one product."""

    name: str
    """As in `deviceProperties`."""
    multiprocessors: int
    """Of the whole device."""
    bytes_per_second: float
    """Of the device's memory."""
    measured_bytes_per_second: float | None
    """The rate that copies reached; None: not measured."""
    peaks: Mapping[str, float]
    """Operations per second by `TYPES`."""
    measured: Mapping[str, MeasuredPeak]
    """By `TYPES`; few devices and types were measured."""
    source: str
    """URL of the data sheet."""

    def peak(self, data_type: str) -> float | None:
        """Return the peak operations per second in a type; None: not in the data sheet."""
        return self.peaks.get(_listed_type(data_type))

    def measured_peak(self, data_type: str) -> MeasuredPeak | None:
        """Return the best measured rate in a type; None: not measured."""
        return self.measured.get(_listed_type(data_type))


def _listed_type(data_type: str) -> str:
    return "float8" if data_type.startswith("float8") else data_type


@dataclass(frozen=True, kw_only=True)
class SpecMatch:
    """A device's spec, or the reason that it has none."""

    spec: DeviceSpec | None
    reason: str = ""


@cache
def all_specs() -> Mapping[str, DeviceSpec]:
    """Return all specs by device name."""
    _, *lines = _TABLE.strip().splitlines()
    specs = map(_spec, lines)
    return MappingProxyType({spec.name: spec for spec in specs})


def _spec(line: str) -> DeviceSpec:
    name, multiprocessors, gigabytes, *peaks, source = line.rsplit(maxsplit=len(TYPES) + 3)
    listed = zip(TYPES, peaks, strict=True)
    return DeviceSpec(
        name=name,
        multiprocessors=int(multiprocessors),
        bytes_per_second=float(gigabytes) * 1e9,
        measured_bytes_per_second=_measured_memory(name),
        peaks=MappingProxyType({of: float(peak) * 1e12 for of, peak in listed if peak != "-"}),
        measured=_measured().get(name, MappingProxyType({})),
        source=SOURCES[source],
    )


def _measured_memory(name: str) -> float | None:
    gigabytes = MEASURED_MEMORY.get(name)
    return gigabytes * 1e9 if gigabytes is not None else None


@cache
def _measured() -> Mapping[str, Mapping[str, MeasuredPeak]]:
    peaks: dict[str, dict[str, MeasuredPeak]] = {}
    for line in MEASURED.strip().splitlines():
        name, data_type, rate, shape, version, source = line.rsplit(maxsplit=5)
        peaks.setdefault(name.strip(), {})[data_type] = MeasuredPeak(
            flops_per_second=float(rate) * 1e12,
            shape=shape,
            torch_version=version,
            source=MEASURED_SOURCES[source],
        )
    return peaks


def find_spec(properties: Mapping[str, object]) -> SpecMatch:
    """Return the spec of a device by an entry of `deviceProperties`."""
    name = str(properties.get("name") or "").strip()
    if not name:
        return SpecMatch(spec=None, reason="The trace does not name the device.")
    spec = all_specs().get(name)
    if spec is None:
        return SpecMatch(spec=None, reason=f"No data sheet is listed for {name!r}.")
    count = properties.get("numSms")
    if count != spec.multiprocessors:
        recorded = "an unknown number" if count is None else str(count)
        reason = (
            f"A whole {name} has {spec.multiprocessors} multiprocessors, this device {recorded}:"
            " the data sheet's peaks do not apply to a partition."
        )
        return SpecMatch(spec=None, reason=reason)
    return SpecMatch(spec=spec)


def compute_major(trace: Trace) -> int | None:
    """Return the major number of the compute capability; None: not recorded.

    AMD's number has another meaning (`gfx9`).
    """
    return whole_number(_properties(trace).get("computeMajor"))


def peak_ratio(trace: Trace, data_type: str, baseline: str) -> float | None:
    """Return the device's peak in a type over that in a baseline type; None: unknown."""
    spec = find_spec(_properties(trace)).spec
    if spec is None:
        return None
    peak, baseline_peak = spec.peak(data_type), spec.peak(baseline)
    return peak / baseline_peak if peak and baseline_peak else None


def measured_source(trace: Trace, data_type: str) -> str:
    """Return who measured the device's peak in a type; "" where nobody did."""
    spec = find_spec(_properties(trace)).spec
    peak = spec.measured_peak(data_type) if spec else None
    return peak.source if peak else ""


def _properties(trace: Trace) -> dict[str, object]:
    """Return the properties of the busiest device; of any where all have the same name."""
    properties = device_properties(trace)
    device = main_device(trace)
    if device is not None and device.device in properties:
        return dict(properties[device.device])
    names = {str(entry.get("name")) for entry in properties.values()}
    return dict(next(iter(properties.values()))) if len(names) == 1 else {}
