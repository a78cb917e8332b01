"""Write a page for every rule into docs/rules/, as `stepscope explain` prints it."""

from pathlib import Path

from stepscope.render import rule_page
from stepscope.rules import all_rules

FOLDER = Path(__file__).parent.parent / "docs" / "rules"


def main() -> None:
    """Write the pages that differ, and remove those of rules that are gone."""
    FOLDER.mkdir(exist_ok=True)
    pages = {rule_page.file_name(rule): rule_page.render(rule) for rule in all_rules()}
    for old in FOLDER.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, page in pages.items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
