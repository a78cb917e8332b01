"""What to do about copies within the device, by the operator that makes most of them."""

from stepscope.base.findings import Fix

CHANGED_ORDER = ("aten::contiguous", "aten::clone", "aten::reshape", "aten::flatten")
VERIFY = (
    "Under this rule the next trace lists fewer copies, and in Kernels they take less of the time."
)
REORDERED = Fix(
    "Keep changed orders of dimensions as views: many operators take strides.",
    "scores = torch.einsum('bqhd,bkhd->bhqk', query, key)  # instead of\n"
    "# scores = query.transpose(1, 2).contiguous() @ key.permute(0, 2, 3, 1).contiguous()\n"
    "# and F.scaled_dot_product_attention, nn.functional.linear and torch.compile take\n"
    "# transposed tensors as they are",
    verify=VERIFY,
    caveats=(
        "A kernel that insists on one piece of memory copies by itself what it is not given so.",
        "Of a tensor that is read many times, one copy may be worth its time.",
    ),
)
FIXES = {
    "aten::repeat": Fix(
        "Expand instead of repeat: operators broadcast without a copy.",
        "mask = mask.expand(batch, -1, -1)  # instead of mask.repeat(batch, 1, 1)",
        verify=VERIFY,
        caveats=("An expanded tensor must not be written in place.",),
    ),
    "aten::repeat_interleave": Fix(
        "Let the operator broadcast the repeated dimension.",
        "F.scaled_dot_product_attention(query, key, value, enable_gqa=True)\n"
        "# instead of key.repeat_interleave(groups, dim=1)",
        verify=VERIFY,
        caveats=("enable_gqa needs torch 2.5 or later.",),
    ),
    "aten::constant_pad_nd": Fix(
        "Allocate the tensor padded, and fill it, instead of padding it in every step.",
        "padded = torch.zeros(padded_shape, device=x.device, dtype=x.dtype)  # once\n"
        "padded[..., : x.shape[-1]] = x  # or choose sizes that need no padding",
        verify=VERIFY,
    ),
    "aten::_foreach_copy_": Fix(
        "Let the inputs of a graph stay where they are, so that none is copied into place.",
        "torch._dynamo.mark_static_address(inputs)  # before the compiled call\n"
        "# of a graph of your own: write the batch into its static input directly",
        verify=VERIFY,
        caveats=("The tensor's memory must then be the same in every step.",),
    ),
}


def fix(operator: str, *, is_compiled: bool) -> Fix:
    """Return the fix for copies that an operator makes most of; all within compiled code or not."""
    if operator in FIXES:
        return FIXES[operator]
    if operator in CHANGED_ORDER:
        return REORDERED
    if is_compiled:
        return FIXES["aten::_foreach_copy_"]
    return Fix(
        f"Let {operator} work on the tensor where it lies.",
        "cache[:, position] = value  # write what is new, instead of copying what is there\n"
        "torch.mm(a, b, out=buffer)  # compute into the buffer, instead of copying into it",
        verify=VERIFY,
        caveats=(
            f"Where {operator} comes from a library, look for its setting: the copy is its own.",
        ),
    )
