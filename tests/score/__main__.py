"""`make score`: writes docs/accuracy.md from the recordings in sample_logs/, prints most of it.

What each rule's own page says of it is written too (rule_records.json, which the package carries).

Other programs are asked about the recordings that changed since they were asked; what they said
is kept in peers.json.
"""

import sys

from loading import ROOT
from score import rule_records
from score.page import page, parts
from score.peers import brought_up_to_date
from score.stories import stories

PAGE = ROOT / "docs" / "accuracy.md"
HEADING = "\n## "
PRINTED = ("{ #pairs }", "{ #rules }")
"""What headings end in whose sections are printed behind the summary."""


def main() -> None:
    """Write the page anew."""
    known = stories()
    text = page(known, brought_up_to_date(known))
    rule_records.FILE.write_bytes(rule_records.content(parts(known)))
    PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write(printed(text))


def printed(text: str) -> str:
    """Return what is printed of the page: its summary, the pairs and the rules."""
    summary, *sections = text.split(HEADING)
    chosen = [each for each in sections if each.partition("\n")[0].endswith(PRINTED)]
    return HEADING.join((summary, *chosen)) + "\n"


if __name__ == "__main__":
    main()
