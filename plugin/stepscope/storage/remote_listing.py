"""Remote listings a page at a time: as S3 sends them, elsewhere a folder at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import fsspec

Info = Mapping[str, Any]
Page = Sequence[Info]
Within = Mapping[str, int]
"""What bounds a call, where the library can be bounded."""
PASSED_OVER = (FileNotFoundError, NotADirectoryError, PermissionError)
"""A folder below that has gone, or is closed, costs itself alone."""


def below(system: fsspec.AbstractFileSystem, base: str, within: Within) -> Iterator[Page]:
    """Yield what lies below a folder, whatever it is; where nothing does, perhaps nothing."""
    pages: Callable[..., Iterator[Page]] = _of_s3 if hasattr(system, "call_s3") else _by_folder
    return pages(system, base, within)


def _of_s3(system: Any, base: str, within: Within) -> Iterator[Page]:  # noqa: ANN401 (s3fs')
    """Yield pages of keys: one listing tells of all folders."""
    bucket, key, _ = system.split_path(base)
    wanted = {"Bucket": bucket, "Prefix": f"{key}/" if key else "", **system.req_kw}
    while True:
        answer = system.call_s3("list_objects_v2", **wanted, **within)
        yield [
            {**each, "name": f"{bucket}/{each['Key']}", "size": each["Size"]}
            for each in answer.get("Contents", ())
        ]
        if not answer.get("IsTruncated"):
            return
        wanted["ContinuationToken"] = answer["NextContinuationToken"]


def _by_folder(system: fsspec.AbstractFileSystem, base: str, within: Within) -> Iterator[Page]:
    """Yield what lies in the folder itself, then all that is in each folder of it."""
    found = system.ls(base, detail=True, **within)
    yield [each for each in found if each["type"] != "directory"]
    folders = (each["name"] for each in found if each["type"] == "directory")
    for folder in sorted(folders):
        if folder.rstrip("/") == base or folder.rpartition("/")[2].startswith("."):
            continue
        with suppress(*PASSED_OVER):
            yield list(system.find(folder, detail=True, **within).values())
