"""Detection of trace files that are still being written, by nearly free checks.

S3, Google and Azure storage list only complete objects. Elsewhere a file may be visible while the
profiler writes it, which takes from tenths of a second to minutes. A small file is read at once,
since reading it again is cheap; a large, recently changed file is read after it has settled. A
recently changed file without an end is not reported as damaged but read again later.
"""

import math
import time

from stepscope.catalog.file_state import Entry
from stepscope.storage import FileStamp

SETTLED_SECONDS = 2.0
"""Time without a change after which a file counts as complete."""
MOST_SETTLED_SECONDS = 30.0
"""The same for a file that grew repeatedly: on NFS, files grow in jumps."""
MOST_DOUBLINGS = 8
"""Limit of the doublings of the waiting time, so that no float overflows."""
GIVEN_UP_SECONDS = 15.0
"""Time without a change after which a file without an end counts as cut off."""
QUICK_BYTES = 4 * 2**20
"""Size up to which a file is read at once."""


def age_s(stamp: FileStamp, seen_at: float) -> float:
    """Return the seconds since a file last changed; if clocks differ, since it was first seen."""
    since_change = (time.time_ns() - stamp.modified_ns) / 1e9
    return max(since_change, time.monotonic() - seen_at)


def seconds_until_read(stamp: FileStamp, seen_at: float, cut_off_count: int = 0) -> float:
    """Return the seconds to wait before reading a file; 0 to read it now."""
    if stamp.tag or (stamp.size_bytes <= QUICK_BYTES and not cut_off_count):
        return 0.0
    doublings = min(cut_off_count, MOST_DOUBLINGS)
    settled = min(math.ldexp(SETTLED_SECONDS, doublings), MOST_SETTLED_SECONDS)
    return max(0.0, settled - age_s(stamp, seen_at))


def seconds_until_reread(entry: Entry, now: FileStamp, *, is_cut_off: bool) -> float:
    """Return the seconds to wait before reading a file again; 0 if the last reading is valid.

    `now` is its stamp after that reading.
    """
    if entry.stamp.tag:
        return 0.0
    if now != entry.stamp:
        return seconds_until_read(now, time.monotonic(), entry.cut_off_count + 1)
    if is_cut_off:
        return max(0.0, GIVEN_UP_SECONDS - age_s(entry.stamp, entry.seen_at))
    return 0.0
