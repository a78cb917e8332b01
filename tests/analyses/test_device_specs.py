"""The table of devices: consistent in itself, cited, and matched by name and size alone."""

import pytest

from stepscope.analyses.device_specs import SOURCES, TYPES, all_specs, find


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
        assert spec.peaks.get("bfloat16", 0) <= spec.peaks["float16"]


def test_peaks_are_dense() -> None:
    # NVIDIA's headline for the H100 SXM is 1,979 TFLOP/s in FP16, with sparsity
    h100 = all_specs()["NVIDIA H100 80GB HBM3"]
    assert h100.peak("float16") == pytest.approx(989.4e12)
    assert h100.peak("float8_e4m3fn") == pytest.approx(1978.9e12)
    assert h100.peak("complex64") is None


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100 80GB PCIe", 1935),
    ],
)
def test_variants_of_one_chip_are_told_apart_by_name(name: str, gigabytes: int) -> None:
    found = find({"name": name, "numSms": 108}).spec
    assert found is not None
    assert found.bytes_per_second == gigabytes * 1e9
    assert found.peak("bfloat16") == 312e12


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "does not say which device"),
        ({"name": ""}, "does not say which device"),
        ({"name": None}, "does not say which device"),
        ({"name": "AMD Radeon Graphics", "numSms": 104}, "No data sheet"),
        ({"name": "NVIDIA H100", "numSms": 132}, "No data sheet"),  # no name is completed
        ({"name": "AMD Instinct MI300X", "numSms": 38}, "304 multiprocessors, this one has 38"),
        ({"name": "AMD Instinct MI300X"}, "does not say how many"),
        ({"name": ["NVIDIA B200"], "numSms": 148}, "No data sheet"),
    ],
)
def test_what_is_not_known_for_certain_has_no_spec(
    properties: dict[str, object], reason: str
) -> None:
    found = find(properties)
    assert found.spec is None
    assert reason in found.reason
