"""Which files somebody still writes, told by signs that cost next to nothing.

Remote storage that names the states of its objects (S3, Google, Azure) shows an object only when
it is whole. Elsewhere a file may be seen while it is written: profilers write some tenths of a
second to some minutes. A small file is read at once, as that costs nothing; a large one that
changed a moment ago is read when it has not changed for a moment. And a file whose end is missing
when it is read, and that changed lately, is not damaged: it is read again when it has settled.
"""

import math
import time

from stepscope.catalog.file_state import Entry
from stepscope.storage import FileStamp

SETTLED_SECONDS = 2.0
"""A file that has not changed for so long is taken to be written."""
MOST_SETTLED_SECONDS = 30.0
"""The same for one that turned out to grow, again and again: NFS shows what is written in jumps."""
MOST_DOUBLINGS = 8
"""Of the one to the other: no number is too large for a float."""
GIVEN_UP_SECONDS = 15.0
"""After so long without a change, a file whose end is missing is cut off."""
QUICK_BYTES = 4 * 2**20
"""A file up to that size is read at once: to read it again costs nothing."""


def age_s(stamp: FileStamp, seen_at: float) -> float:
    """Return for how long a file has been as it is; where clocks differ, since it was seen."""
    of_change = (time.time_ns() - stamp.modified_ns) / 1e9
    return max(of_change, time.monotonic() - seen_at)


def waits_s(stamp: FileStamp, seen_at: float, cut_off_count: int = 0) -> float:
    """Return for how long to leave a file alone before it is read; 0: it is read now."""
    if stamp.tag or (stamp.size_bytes <= QUICK_BYTES and not cut_off_count):
        return 0.0
    doublings = min(cut_off_count, MOST_DOUBLINGS)
    settled = min(math.ldexp(SETTLED_SECONDS, doublings), MOST_SETTLED_SECONDS)
    return max(0.0, settled - age_s(stamp, seen_at))


def still_s(entry: Entry, now: FileStamp, *, is_cut_off: bool) -> float:
    """Return for how long to leave a file alone that was read; 0: what was read of it holds.

    `now` is its stamp after the reading.
    """
    if entry.stamp.tag:
        return 0.0
    if now != entry.stamp:
        return waits_s(now, time.monotonic(), entry.cut_off_count + 1)
    if is_cut_off:
        return max(0.0, GIVEN_UP_SECONDS - age_s(entry.stamp, entry.seen_at))
    return 0.0
