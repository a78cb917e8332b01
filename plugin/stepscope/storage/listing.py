"""What a look through a folder brings: pages, so that whoever looks can tell how far that is."""

from collections.abc import Callable, Mapping

from stepscope.storage.file_stamp import FileStamp

Listing = tuple[str, Mapping[str, FileStamp | None]]
"""A folder, and some of its files by name with what the listing says of them."""
NameFilter = Callable[[str], object]
"""Whether anybody wants to know more of a file than its name."""
PAGE_COUNT = 1000
"""Files of a page: what S3 sends at once."""


def names_only(_name: str) -> bool:
    """Names are enough."""
    return False
