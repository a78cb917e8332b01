"""Logs with the damage that is met most, made of samples.

From a shell, in `tests`: `python -m browser.damaged FOLDER` writes one for the page's fixtures.
"""

import gzip
import re
import sys
from pathlib import Path

from logs import write_long_ago

SAMPLE_LOGS = Path(__file__).resolve().parents[2] / "sample_logs"
RECORDED = SAMPLE_LOGS / "synthetic_item_sync" / "fault"
OPERATOR = re.compile(rb'"name": ?"(aten::[a-z_0-9]+)"')
QUOTED_COUNT = 40
KEPT_SHARE = 0.8


def recording(folder: Path = RECORDED) -> bytes:
    """Return a run's trace as it lies on disk, compressed."""
    return min(folder.glob("*.pt.trace.json.gz")).read_bytes()


def with_quotes(compressed: bytes) -> bytes:
    """Put quotes that are not escaped into some names, as `record_function('a "b"')` does."""
    text = gzip.decompress(compressed)
    return gzip.compress(OPERATOR.sub(rb'"name": "\1 "of" mine"', text, count=QUOTED_COUNT), 1)


def cut_off(compressed: bytes) -> bytes:
    """End the file in the middle, as where a job is killed."""
    return compressed[: int(len(compressed) * KEPT_SHARE)]


def write(folder: Path) -> Path:
    """Write a run of two ranks, one damaged twice, beside a run that is whole."""
    whole = recording()
    place = folder / "damaged"
    write_long_ago(place / "rank0.1700000000000.pt.trace.json.gz", cut_off(with_quotes(whole)))
    write_long_ago(place / "rank1.1700000000000.pt.trace.json.gz", whole)
    return folder


if __name__ == "__main__":
    write(Path(sys.argv[1]))
