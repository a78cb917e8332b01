"""Device and host memory: named allocations, and the totals that the profiler records."""

from collections import defaultdict
from typing import Any

from synthesis.schedule import ScheduleError

CPU_TYPE = 0
CPU_ID = -1
GRANULE_BYTES = 512
SEGMENT_BYTES = 2 << 20  # the caching allocator asks the driver for multiples of 2 MiB
FIRST_ADDRESS = 0x7F_0000_0000_00


class Allocator:
    """Hands out addresses and keeps the totals of the device and of the host."""

    def __init__(self, device_type: int, reserved_bytes: int) -> None:
        self._device_type = device_type
        self._live: dict[str, tuple[str, int, int]] = {}
        self._allocated: defaultdict[str, int] = defaultdict(int)
        self._reserved_bytes = reserved_bytes
        self._next_address = FIRST_ADDRESS

    def allocate(self, name: str, size_bytes: int, device: str) -> dict[str, Any]:
        """Return the details of an allocation."""
        if name in self._live:
            msg = f"{name!r} is allocated twice; free it first, or name it otherwise"
            raise ScheduleError(msg)
        address = self._next_address
        self._next_address += -(-size_bytes // GRANULE_BYTES) * GRANULE_BYTES
        self._live[name] = (device, size_bytes, address)
        return self._details(device, size_bytes, address)

    def free(self, name: str) -> dict[str, Any]:
        """Return the details of a release."""
        if name not in self._live:
            msg = f"{name!r} is freed but was not allocated"
            raise ScheduleError(msg)
        device, size_bytes, address = self._live.pop(name)
        return self._details(device, -size_bytes, address)

    def reserve(self, size_bytes: int) -> None:
        """Add memory reserved from the driver; negative: released."""
        self._reserved_bytes += size_bytes

    def _details(self, device: str, size_bytes: int, address: int) -> dict[str, Any]:
        self._allocated[device] += size_bytes
        allocated_bytes, is_cpu = self._allocated[device], device == "cpu"
        if not is_cpu and allocated_bytes > self._reserved_bytes:
            self._reserved_bytes = -(-allocated_bytes // SEGMENT_BYTES) * SEGMENT_BYTES
        return {
            "Total Reserved": 0 if is_cpu else self._reserved_bytes,
            "Total Allocated": allocated_bytes,
            "Bytes": size_bytes,
            "Device Id": CPU_ID if is_cpu else 0,
            "Device Type": CPU_TYPE if is_cpu else self._device_type,
            "Addr": address,
        }
