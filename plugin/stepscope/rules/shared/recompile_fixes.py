"""Why frames are compiled again, as far as their inputs tell, and what to do about it."""

from stepscope.analyses.compiled.changing_inputs import ChangingInputs
from stepscope.base.findings import Fix

MOST_SIZES = 5
VERIFY = (
    "TORCH_LOGS=recompiles names every guard that failed; in the next trace nothing is compiled "
    "behind warm-up."
)
GIVEN_UP = (
    "After torch._dynamo.config.recompile_limit (8) compilations a frame runs uncompiled; to raise "
    "the limit only puts that off."
)


def cause(inputs: ChangingInputs) -> str:
    """Say what changes between the calls."""
    if inputs.change == "sizes":
        seen = ", ".join(str(size) for size in inputs.sizes[:MOST_SIZES])
        more = ", …" if len(inputs.sizes) > MOST_SIZES else ""
        return f"dimension {inputs.dimension} of an input changes ({seen}{more})."
    if inputs.change == "dimensions":
        return "an input changes its number of dimensions."
    if inputs.change == "none":
        return "no input changes its shape, so a Python value or a mode does."
    return "which guard failed was not recorded."


def fix(inputs: ChangingInputs) -> Fix:
    """Return what makes the guards hold."""
    if inputs.change == "sizes":
        return Fix(
            "Say which dimension changes, so that one compilation holds for all its sizes.",
            f"torch._dynamo.mark_dynamic(batch, {inputs.dimension})  # before the compiled call"
            "\n# or pad to a few sizes, or torch.compile(model, dynamic=True)",
            verify=VERIFY,
            caveats=(GIVEN_UP, "Code for any size may be somewhat slower than for one."),
        )
    if inputs.change == "none":
        return Fix(
            "Keep Python values that change out of compiled code, or pass them as tensors.",
            "scale = torch.tensor(step, device=device)  # instead of a Python int or float\n"
            "output = compiled(batch, scale)",
            verify=VERIFY,
            caveats=(
                GIVEN_UP,
                "Modes count as well: train() and eval(), with and without gradients are compiled "
                "once each.",
            ),
        )
    return Fix(
        "Find the guard that fails, and make it hold.",
        "# TORCH_LOGS=recompiles python train.py\n"
        "model = torch.compile(model, dynamic=True)  # where it is a shape",
        verify=VERIFY,
        caveats=(GIVEN_UP,),
    )
