"""A caching allocator in miniature that writes snapshots as torch documents them.

`torch/cuda/memory.py` (`_snapshot`) says what the keys are. There is no GPU here: the peer
`torch.cuda._memory_viz` checks that what this writes is what torch reads.
"""

from typing import Any

MIB = 2**20
ROUND_BYTES = 512
START_US = 1_700_000_000_000_000


def frames(*names: str) -> list[dict[str, Any]]:
    """A stack, innermost first, as torch has it."""
    return [{"filename": f"/home/me/{name}.py", "line": 7, "name": name} for name in names]


class Allocator:
    """One device's; a segment for each size class, filled from its start, first fit."""

    def __init__(self, device: int = 0) -> None:
        self.device = device
        self.segments: list[dict[str, Any]] = []
        self.entries: list[dict[str, Any]] = []

    def alloc(self, size: int, *stack: str, is_recorded: bool = True) -> int:
        """Allocate, and return the address."""
        rounded = -(-size // ROUND_BYTES) * ROUND_BYTES
        block = next(
            (b for s in self.segments for b in s["blocks"] if _fits(b, rounded)), None
        ) or self._segment(rounded, is_recorded=is_recorded)
        self._split(block, rounded)
        block.update(state="active_allocated", requested_size=size, frames=frames(*stack))
        if is_recorded:
            self._enter("alloc", block["address"], size, frames(*stack))
        return int(block["address"])

    def free(self, address: int, *, is_pending: bool = False) -> None:
        """Give back; `is_pending` where another stream still uses it."""
        block = self._block(address)
        self._enter("free_requested", address, block["requested_size"], frames("free"))
        block["state"] = "active_pending_free"
        if not is_pending:
            self._enter("free_completed", address, block["requested_size"], frames("free"))
            block["state"] = "inactive"

    def out_of_memory(self, size: int, device_free: int, *stack: str) -> None:
        """Fail to allocate."""
        self._enter("oom", None, size, frames(*stack), device_free=device_free)

    def snapshot(self) -> dict[str, Any]:
        """What `torch.cuda.memory._snapshot()` returns."""
        return {
            "segments": [self._summed(segment) for segment in self.segments],
            "device_traces": [*([] for _ in range(self.device)), list(self.entries)],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False},
            "external_annotations": [],
        }

    def _enter(
        self, action: str, address: int | None, size: int, stack: list[Any], **more: Any
    ) -> None:
        place = {} if address is None else {"addr": address}
        self.entries.append(
            {
                "action": action,
                **place,
                **more,
                "size": size,
                "stream": 0,
                "time_us": START_US + 10 * len(self.entries),
                "compile_context": "N/A",
                "frames": stack,
            }
        )

    def _segment(self, size: int, *, is_recorded: bool) -> dict[str, Any]:
        total = 2 * MIB if size <= MIB else -(-size // (20 * MIB)) * 20 * MIB
        address = 2**46 + len(self.segments) * 2**32
        block = {"address": address, "size": total, "requested_size": 0, "state": "inactive"}
        self.segments.append({"address": address, "total_size": total, "blocks": [block]})
        if is_recorded:
            self._enter("segment_alloc", address, total, frames("malloc"))
        return block

    def _split(self, block: dict[str, Any], size: int) -> None:
        if block["size"] == size:
            return
        blocks = next(s["blocks"] for s in self.segments if block in s["blocks"])
        rest = {
            "address": block["address"] + size,
            "size": block["size"] - size,
            "requested_size": 0,
            "state": "inactive",
            "frames": [],
        }
        block["size"] = size
        blocks.insert(blocks.index(block) + 1, rest)

    def _block(self, address: int) -> dict[str, Any]:
        return next(b for s in self.segments for b in s["blocks"] if b["address"] == address)

    def _summed(self, segment: dict[str, Any]) -> dict[str, Any]:
        active = [b for b in segment["blocks"] if b["state"] != "inactive"]
        allocated = [b for b in active if b["state"] == "active_allocated"]
        return {
            "device": self.device,
            **segment,
            "allocated_size": sum(b["size"] for b in allocated),
            "active_size": sum(b["size"] for b in active),
            "requested_size": sum(b["requested_size"] for b in allocated),
            "stream": 0,
            "segment_type": "small" if segment["total_size"] == 2 * MIB else "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
        }


def _fits(block: dict[str, Any], size: int) -> bool:
    return block["state"] == "inactive" and bool(block["size"] >= size)
