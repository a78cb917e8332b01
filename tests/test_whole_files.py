"""Whole files: inflated where they are gzip, and never more than was allowed."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from stepscope.base.errors import UnreadableError
from stepscope.ingest.memory_files import read_head, read_whole


def _file(folder: Path, content: bytes) -> str:
    path = folder / "file"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("content", [b"", b"x", b"long" * 1_000_000])
def test_plain_and_gzipped_content_is_the_same(tmp_path: Path, content: bytes) -> None:
    assert read_whole(_file(tmp_path, content), 2**30, "") == content
    assert read_whole(_file(tmp_path, gzip.compress(content)), 2**30, "") == content


def test_a_bomb_takes_no_more_than_what_is_allowed(tmp_path: Path) -> None:
    path = _file(tmp_path, gzip.compress(bytes(2**26)))
    tracemalloc.start()
    with pytest.raises(UnreadableError, match=r"contains more than 1\.00 MiB\. Record less\."):
        read_whole(path, 2**20, "Record less.")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 2**24


def test_a_plain_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="contains more than"):
        read_whole(_file(tmp_path, bytes(2**22)), 2**20, "")


def test_gzip_that_is_cut_off_or_broken_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b"content" * 1000)
    with pytest.raises(UnreadableError, match="ends in the middle"):
        read_whole(_file(tmp_path, packed[:-20]), 2**20, "")
    broken = packed[:15] + b"\xff" * 20 + packed[35:]
    with pytest.raises(UnreadableError, match=r"damaged|ends in the middle"):
        read_whole(_file(tmp_path, broken), 2**20, "")


def test_what_is_behind_the_gzip_stream_is_not_left_out_in_silence(tmp_path: Path) -> None:
    packed = gzip.compress(b"content")
    for behind in (packed, b"text"):
        with pytest.raises(UnreadableError, match="There is more data"):
            read_whole(_file(tmp_path, packed + behind), 2**20, "")
    assert read_whole(_file(tmp_path, packed + bytes(512)), 2**20, "") == b"content"


def test_the_head_is_inflated_too(tmp_path: Path) -> None:
    content = b"abc" * 100_000
    assert read_head(_file(tmp_path, content), 100) == content[:100]
    assert read_head(_file(tmp_path, gzip.compress(content)), 100)[:9] == b"abcabcabc"
    assert read_head(_file(tmp_path, b"\x1f\x8b broken"), 100) == b""


def test_folders_and_what_is_not_there_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(UnreadableError, match="cannot be read"):
            read_whole(str(path), 10, "")
        with pytest.raises(UnreadableError, match="cannot be read"):
            read_head(str(path), 10)
