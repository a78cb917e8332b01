"""How tensors that are made on the CPU are made on the device instead."""

from collections import Counter
from collections.abc import Mapping

from stepscope.base.findings import Fix, Risk

FROM_LIST = "aten::lift_fresh"
RANDOM = "aten::rand"
VERIFY = "No Memcpy HtoD is left behind the operators that are named here."
ARGUMENTS = {
    "arange": "n",
    "linspace": "start, end, n",
    "eye": "n",
    "randperm": "n",
    "full": "{shape}, value",
    "full_like": "x, value",
    "randint": "high, {shape}",
    "randint_like": "x, high",
}
"""What a function takes that takes more than a shape, or than a tensor to be like."""
MOST_LINES = 4


def fix(makers: Counter[str], shapes: Mapping[str, str], target: str) -> Fix:
    """Return the calls that were seen, made on the device.

    `shapes` are those seen most of each maker, where known; `target` is what `.to()` takes.
    """
    lines = [_line(name, shapes.get(name, "shape"), target) for name, _ in _most(makers)]
    if FROM_LIST in makers:
        lines.append(
            "# a list still has to be copied: make what never changes once, before the loop"
        )
    return Fix(
        "Make them on the device.",
        "\n".join(lines),
        verify=VERIFY,
        caveats=(
            "Random numbers come from the device's own generator then: others for the same seed.",
        )
        if risk(makers) == "numerics"
        else (),
    )


def risk(makers: Counter[str]) -> Risk:
    """Return what it may change: which random numbers are drawn."""
    return "numerics" if any(name.startswith(RANDOM) for name in makers) else "none"


def _most(makers: Counter[str]) -> list[tuple[str, int]]:
    return makers.most_common(MOST_LINES)


def _line(maker: str, shape: str, target: str) -> str:
    name = "tensor" if maker == FROM_LIST else maker.removeprefix("aten::")
    plain = "values" if maker == FROM_LIST else "x" if name.endswith("_like") else "{shape}"
    call = f"torch.{name}({ARGUMENTS.get(name, plain).format(shape=shape)}"
    return f"{call}, device={target})  # not {call}).to({target})"
