"""Write the pages of all rules into docs/rules/, as `stepscope explain` prints them.

Ids of rules as arguments limit it to their pages. Without any, it also removes the pages of rules
that are gone.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from stepscope.render import rule_page
from stepscope.rules import all_rules

FOLDER = Path(__file__).parent.parent / "docs" / "rules"


def main(names: Sequence[str]) -> None:
    """Write the pages that differ: of the named rules, or of all."""
    FOLDER.mkdir(exist_ok=True)
    rules = [rule for rule in all_rules() if not names or rule.id in names]
    pages = {rule_page.file_name(rule): rule_page.render(rule) for rule in rules}
    for old in () if names else FOLDER.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, page in pages.items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
