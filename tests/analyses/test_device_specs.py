"""The table of devices: consistent in itself, cited, and matched by name and size alone."""

import math
import re
from typing import Any

import pytest

from stepscope.analyses.core.device_specs import MEASURED, SOURCES, TYPES, all_specs, find_spec


def test_every_device_has_a_source_and_figures_that_fit_each_other() -> None:
    assert {spec.source for spec in all_specs().values()} == set(SOURCES.values())
    for spec in all_specs().values():
        assert spec.source.startswith("https://")
        assert set(spec.peaks) <= set(TYPES)
        assert 1e11 < spec.bytes_per_second < 1e13
        assert spec.multiprocessors > 0
        # half the bits, at least as fast; matrix units take 16 bits on all of them
        narrower = [spec.peaks[key] for key in TYPES[:4] if key in spec.peaks]
        assert narrower == sorted(narrower), spec.name
        assert spec.peaks["float16"] > spec.peaks["float32"]
        # accumulated in float32 both, 16-bit floats are alike, and 8 bits are twice as fast
        assert spec.peak("bfloat16") in {None, spec.peaks["float16"]}
        if "float8" in spec.peaks:
            twice = 2 * spec.peaks["float16"]
            assert spec.peaks["float8"] == pytest.approx(twice, rel=0.02), spec.name


def test_peaks_of_a_device_differ_by_powers_of_two() -> None:
    # units take a power of two of operations a cycle; matrix units may clock lower than others
    for spec in all_specs().values():
        ratios = [spec.peaks["float16"] / peak for peak in spec.peaks.values()]
        steps = [math.log2(ratio) for ratio in ratios]
        assert [round(step) for step in steps] == pytest.approx(steps, abs=0.25), spec.name


def test_no_measured_rate_is_above_the_sheets_and_each_is_of_a_listed_device() -> None:
    measured = [spec for spec in all_specs().values() if spec.measured]
    assert sum(len(spec.measured) for spec in measured) == len(MEASURED.strip().splitlines())
    for spec in measured:
        for data_type, peak in spec.measured.items():
            assert 0.5 < peak.flops_per_second / spec.peaks[data_type] < 1


def test_peaks_are_dense() -> None:
    # NVIDIA's headline for the H100 SXM is 1,979 TFLOP/s in FP16, with sparsity
    h100 = all_specs()["NVIDIA H100 80GB HBM3"]
    assert h100.peak("float16") == 989.5e12
    assert h100.peak("float8_e4m3fn") == 1979e12
    assert h100.peak("complex64") is None


def test_geforce_accumulates_in_float32() -> None:
    # the white papers also have 142, 330.3 and 419 with 16-bit accumulation, and twice the FP8
    geforce = {name: spec for name, spec in all_specs().items() if "GeForce" in name}
    assert {
        name: (of.peak("float16"), of.peak("float8_e4m3fn")) for name, of in geforce.items()
    } == {
        "GeForce RTX 3090": (71e12, None),
        "NVIDIA GeForce RTX 3090": (71e12, None),
        "NVIDIA GeForce RTX 4090": (165.2e12, 330.3e12),
        "NVIDIA GeForce RTX 5090": (209.5e12, 419e12),
    }


TORCH_NAMES = {
    "NVIDIA H100": "NVIDIA H100 80GB HBM3",
    "NVIDIA A100": "NVIDIA A100-SXM4-80GB",
    "NVIDIA L4": "NVIDIA L4",
    "AMD MI350X": "AMD Instinct MI350X",
    "AMD MI300A": "AMD Instinct MI300A",
    "AMD MI300X": "AMD Instinct MI300X",
    "AMD MI210X": "AMD Instinct MI210",
}
TORCH_GUESSES = {
    # without a figure in the data sheet, by its own comments
    ("NVIDIA L4", "float64"),
    ("AMD MI350X", "tf32"),
    ("AMD MI210X", "tf32"),
    ("AMD MI210X", "float8"),
}


@pytest.mark.peer
@pytest.mark.parametrize(("torchs", "ours"), TORCH_NAMES.items())
def test_torchs_table_has_the_same_figures_but_for_its_errors(torchs: str, ours: str) -> None:
    device_info: Any = pytest.importorskip("torch._inductor.analysis.device_info")
    info, spec = device_info.lookup_device_info(torchs), all_specs()[ours]
    # torch 2.13 has the L4's figures with sparsity, though it says that they are without
    dense = 0.5 if torchs == "NVIDIA L4" else 1 / info.tops_sparsity_factor
    for of, peak in info.tops.items():
        name = re.sub("float8.*", "float8", str(of).removeprefix("torch."))
        if (torchs, name) in TORCH_GUESSES:
            continue
        factor = 1 if name in {"float32", "float64"} else dense
        unsparsed = peak * factor * 1e12
        assert spec.peak(name) == pytest.approx(unsparsed, rel=0.005), name
    # and the L4's bandwidth is the H100's
    bandwidth = 300 if torchs == "NVIDIA L4" else info.dram_bw_gbs
    assert spec.bytes_per_second == pytest.approx(bandwidth * 1e9, rel=0.03)


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100 80GB PCIe", 1935),
    ],
)
def test_variants_of_one_chip_are_told_apart_by_name(name: str, gigabytes: int) -> None:
    found = find_spec({"name": name, "numSms": 108}).spec
    assert found is not None
    assert found.bytes_per_second == gigabytes * 1e9
    assert found.peak("bfloat16") == 312e12


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "does not name the device"),
        ({"name": ""}, "does not name the device"),
        ({"name": None}, "does not name the device"),
        ({"name": "AMD Radeon Graphics", "numSms": 104}, "No data sheet"),
        ({"name": "NVIDIA H100", "numSms": 132}, "No data sheet"),  # no name is completed
        ({"name": "AMD Instinct MI300X", "numSms": 38}, "304 multiprocessors, this device 38"),
        ({"name": "AMD Instinct MI300X"}, "an unknown number"),
        ({"name": ["NVIDIA B200"], "numSms": 148}, "No data sheet"),
    ],
)
def test_what_is_not_known_for_certain_has_no_spec(
    properties: dict[str, object], reason: str
) -> None:
    found = find_spec(properties)
    assert found.spec is None
    assert reason in found.reason
