"""The rates that matrix products and copies reach on this GPU: `python device_rates.py > FILE`.

Products are of random values, since zeros are faster; each rate is the best of several sizes, from
the median of CUDA events. Writes JSON.
"""

# torch does not annotate Event().
# mypy: allow-untyped-calls

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

SIZES = (
    (4_096, 4_096, 4_096),
    (8_192, 8_192, 8_192),
    (2_048, 2_048, 13_312),
    (16_384, 8_192, 2_048),
)
REPEATS = 12
GIB = 2**30


def seconds(call: Callable[[], Any]) -> float:
    """Returns the median time of a call, after three to warm up."""
    for _ in range(3):
        call()
    times: list[float] = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def product(dtype: torch.dtype, size: tuple[int, int, int]) -> Callable[[], Any]:
    """Returns a matrix product of a type."""
    rows, columns, inner = size
    left = torch.randn(rows, inner, device="cuda")
    right = torch.randn(columns, inner, device="cuda")
    if dtype == torch.float8_e4m3fn:
        one = torch.ones((), device="cuda")
        eighth, other = left.to(dtype), right.to(dtype).t()
        return lambda: torch._scaled_mm(  # noqa: SLF001 (public by use: no other name)
            eighth, other, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    if dtype == torch.int8:
        whole, other = left.mul(20).to(dtype), right.mul(20).to(dtype).t()
        return lambda: torch._int_mm(whole, other)  # noqa: SLF001 (likewise)
    first, second = left.to(dtype), right.to(dtype).t()
    return lambda: first @ second


def product_rate(dtype: torch.dtype, precision: str) -> dict[str, Any]:
    """Returns the best rate of a type, and its size."""
    torch.set_float32_matmul_precision(precision)
    sizes = SIZES[:1] + SIZES[2:3] if dtype in (torch.float64, torch.float32) else SIZES
    rates = {}
    for size in sizes:
        flops = 2 * size[0] * size[1] * size[2]
        rates["x".join(map(str, size))] = flops / seconds(product(dtype, size))
        torch.cuda.empty_cache()
    best = max(rates, key=lambda size: rates[size])
    return {"flops_per_second": rates[best], "size": best, "all": rates}


def copy_rates() -> dict[str, float]:
    """Returns bytes a second: on the device read and written, over the bus one way."""
    source = torch.randint(255, (4 * GIB,), device="cuda", dtype=torch.uint8)
    goal = torch.empty_like(source)
    rates = {"device": 8 * GIB / seconds(lambda: goal.copy_(source))}
    part = source[: GIB // 4]
    pageable = torch.empty(GIB // 4, dtype=torch.uint8).random_(0, 255)
    pinned = pageable.pin_memory()
    for name, host in (("pageable", pageable), ("pinned", pinned)):
        rates[f"{name} to device"] = len(part) / seconds(partial(part.copy_, host))
        rates[f"device to {name}"] = len(part) / seconds(partial(host.copy_, part))
    return rates


def main() -> None:
    """Prints the rates."""
    kinds = {
        "bf16": (torch.bfloat16, "highest"),
        "fp16": (torch.float16, "highest"),
        "tf32": (torch.float32, "high"),
        "fp32": (torch.float32, "highest"),
        "fp64": (torch.float64, "highest"),
        "fp8": (torch.float8_e4m3fn, "highest"),
        "int8": (torch.int8, "highest"),
    }
    rates: dict[str, Any] = {}
    for name, (dtype, precision) in kinds.items():
        try:
            rates[name] = product_rate(dtype, precision)
        except RuntimeError as error:
            rates[name] = {"error": str(error)[:200]}
    properties = torch.cuda.get_device_properties(0)
    written = {
        "device": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "torch": torch.__version__,
        "products": rates,
        "copies_bytes_per_second": copy_rates(),
    }
    sys.stdout.write(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
