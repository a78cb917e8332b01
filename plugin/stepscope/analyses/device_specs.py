"""What devices can do at most, as their makers say: data, each with its source.

Peaks are of dense arithmetic (without structured sparsity, which doubles NVIDIA's headline figures)
on the fastest unit for the type: matrix units where they take it. A device is found by the exact
name that `deviceProperties` has. Where one name stands for several, the number of multiprocessors
tells: AMD's devices may be partitioned, and keep their name. What is not listed, or does not fit,
has no peak: an unknown device is not guessed at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

TYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "float8", "int8")
"""torch's names, `tf32`, and `float8` for all 8-bit floats: the columns of `_TABLE`."""
SOURCES: Mapping[str, str] = MappingProxyType(
    {
        # data sheets, product briefs and architecture white papers
        "v100": "https://images.nvidia.com/content/technologies/volta/pdf/"
        "volta-v100-datasheet-update-us-1165301-r5.pdf",
        "t4": "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/"
        "t4-tensor-core-product-brief.pdf",
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
        "h200": "https://resources.nvidia.com/en-us-gpu-resources/hpc-datasheet-sc23",
        "gh200": "https://resources.nvidia.com/en-us-grace-cpu/grace-hopper-superchip",
        "blackwell": "https://resources.nvidia.com/en-us-blackwell-architecture",
        "ga102": "https://www.nvidia.com/content/PDF/"
        "nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf",
        "ada": "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/"
        "nvidia-ada-gpu-architecture.pdf",
        "gb202": "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/"
        "nvidia-rtx-blackwell-gpu-architecture.pdf",
        "mi210": "https://www.amd.com/content/dam/amd/en/documents/instinct-business-docs/white-papers/"
        "amd-cdna2-white-paper.pdf",
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
        "max": "https://www.intel.com/content/www/us/en/developer/articles/technical/"
        "intel-data-center-gpu-max-series-overview.html",
    }
)
# Operations in 10^12 a second. SMs are also AMD's CUs and Intel's Xe cores (`numSms`).
# MI250 and MI250X are two devices each, of half the package's figures. Of GeForce the white papers
# tell FP16 and FP8 with FP16 and with FP32 accumulation apart: the higher is the peak. Intel's are
# cores x clock (1600 and 1550 MHz) x operations a cycle: 256 in float64 and float32, 2048 in tf32,
# 4096 in 16 bits, 8192 in int8.
_TABLE = """
name                              SMs   GB/s   f64   f32  tf32    f16   bf16     f8     i8 source
Tesla V100-SXM2-16GB               80    900   7.8  15.7     -    125      -      -      - v100
Tesla V100-SXM2-32GB               80    900   7.8  15.7     -    125      -      -      - v100
Tesla V100-PCIE-16GB               80    900     7    14     -    112      -      -      - v100
Tesla V100-PCIE-32GB               80    900     7    14     -    112      -      -      - v100
Tesla V100S-PCIE-32GB              80   1134   8.2  16.4     -    130      -      -      - v100
Tesla T4                           40    320     -   8.1     -     65      -      -    130 t4
NVIDIA A100-SXM4-40GB             108   1555  19.5  19.5   156    312    312      -    624 a100
A100-SXM4-40GB                    108   1555  19.5  19.5   156    312    312      -    624 a100
NVIDIA A100-PCIE-40GB             108   1555  19.5  19.5   156    312    312      -    624 a100
A100-PCIE-40GB                    108   1555  19.5  19.5   156    312    312      -    624 a100
NVIDIA A100-SXM4-80GB             108   2039  19.5  19.5   156    312    312      -    624 a100
A100-SXM4-80GB                    108   2039  19.5  19.5   156    312    312      -    624 a100
NVIDIA A100 80GB PCIe             108   1935  19.5  19.5   156    312    312      -    624 a100
NVIDIA A30                         56    933  10.3  10.3    82    165    165      -    330 a30
NVIDIA A10                         72    600     -  31.2  62.5    125    125      -    250 a10
NVIDIA A40                         84    696     -  37.4  74.8  149.7  149.7      -  299.3 a40
NVIDIA L4                          58    300     -  30.3    60    121    121  242.5  242.5 l4
NVIDIA L40S                       142    864     -  91.6   183 362.05 362.05    733    733 l40s
NVIDIA H100 80GB HBM3             132   3350    67    67 494.7  989.4  989.4 1978.9 1978.9 h100
NVIDIA H100 NVL                   132   3900    60    60 417.5  835.5  835.5 1670.5 1670.5 h100
NVIDIA H100 PCIe                  114   2000    51    51   378  756.5  756.5   1513   1513 h100
NVIDIA H200                       132   4800    67    67 494.7  989.4  989.4 1978.9 1978.9 h200
NVIDIA H200 NVL                   132   4800    60    60 417.5  835.5  835.5 1670.5 1670.5 h200
NVIDIA GH200 480GB                132   4000    67    67 494.7  989.4  989.4 1978.9 1978.9 gh200
NVIDIA B200                       148   8000    40    80  1100   2250   2250   4500   4500 blackwell
NVIDIA GB200                      152   8000    45    90  1250   2500   2500   5000   5000 blackwell
NVIDIA GeForce RTX 3090            82    936     -  35.6  35.6    142     71      -    284 ga102
GeForce RTX 3090                   82    936     -  35.6  35.6    142     71      -    284 ga102
NVIDIA GeForce RTX 4090           128   1008     -  82.6  82.6  330.3  165.2  660.6  660.6 ada
NVIDIA GeForce RTX 5090           170   1792     - 104.8 104.8    419  209.5    838    838 gb202
AMD Instinct MI210                104 1638.4  45.3  45.3     -    181    181      -    181 mi210
AMD Instinct MI250                104 1638.4 45.25 45.25     - 181.05 181.05      - 181.05 mi210
AMD Instinct MI250X               110 1638.4 47.85 47.85     -  191.5  191.5      -  191.5 mi210
AMD Instinct MI300X               304   5325 163.4 163.4 653.7 1307.4 1307.4 2614.9 2614.9 mi300
AMD Instinct MI300X VF            304   5325 163.4 163.4 653.7 1307.4 1307.4 2614.9 2614.9 mi300
AMD Instinct MI300A               228   5325 122.6 122.6 490.3  980.6  980.6 1961.2 1961.2 mi300a
AMD Instinct MI325X               304   6000 163.4 163.4 653.7 1307.4 1307.4 2614.9 2614.9 mi325
AMD Instinct MI350X               256   8000  72.1 144.2     - 2306.9 2306.9 4613.7 4613.7 mi350
AMD Instinct MI355X               256   8000  78.6 157.3     - 2516.6 2516.6 5033.2 5033.2 mi355
Intel(R) Data Center GPU Max 1550 128 3276.8  52.4  52.4 419.4  838.9  838.9      - 1677.7 max
Intel(R) Data Center GPU Max 1100  56 1228.8  22.2  22.2 177.7  355.5  355.5      -  711.1 max
"""


@dataclass(frozen=True, kw_only=True)
class DeviceSpec:
    """One product."""

    name: str
    """What `deviceProperties` calls it."""
    multiprocessors: int
    """Of the whole device."""
    bytes_per_second: float
    """Of the device's memory."""
    peaks: Mapping[str, float]
    """Operations per second by `TYPES`."""
    source: str
    """Where the figures are from."""

    def peak(self, data_type: str) -> float | None:
        """Return the most operations per second in a type; None where the source has no figure."""
        return self.peaks.get("float8" if data_type.startswith("float8") else data_type)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A device's spec, or why it has none."""

    spec: DeviceSpec | None
    reason: str = ""


@cache
def all_specs() -> Mapping[str, DeviceSpec]:
    """Return every device that is listed, by its name."""
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
        peaks=MappingProxyType({of: float(peak) * 1e12 for of, peak in listed if peak != "-"}),
        source=SOURCES[source],
    )


def find(properties: Mapping[str, object]) -> Found:
    """Return the spec of a device by an entry of `deviceProperties`."""
    name = str(properties.get("name") or "").strip()
    if not name:
        return Found(spec=None, reason="The trace does not say which device this is.")
    spec = all_specs().get(name)
    if spec is None:
        return Found(spec=None, reason=f"No data sheet is listed for {name!r}.")
    count = properties.get("numSms")
    if count != spec.multiprocessors:
        told = "does not say how many" if count is None else f"has {count}"
        reason = (
            f"A whole {name} has {spec.multiprocessors} multiprocessors, this one {told}:"
            " a part of it has less to give."
        )
        return Found(spec=None, reason=reason)
    return Found(spec=spec)
