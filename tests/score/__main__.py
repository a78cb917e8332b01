"""`make score`: write docs/accuracy.md from the traces in sample_logs/, and print most of it.

Pairs that ran in turns come from pairs.json, which `python -m score.pairs` writes, and the zoo's
scripts from zoo.json, which `python -m score.zoo` writes.

Also writes rule_records.json, which the package contains for the accuracy section of each rule.

Other programs run on the traces that changed since their last run; peers.json stores their output.
"""

import sys

from loading import ROOT
from score import picture, rule_records
from score.page import page, parts
from score.peers import current_results
from score.stories import stories
from score.turn_pairs import stored_pairs

PAGE = ROOT / "docs" / "accuracy.md"
HEADING = "\n## "
PRINTED = ("{ #pairs }", "{ #turns }", "{ #zoo }", "{ #rules }")
"""Ends of the headings whose sections are printed after the summary."""


def main() -> None:
    """Write the page."""
    truth = stories()
    text = page(truth, current_results(truth))
    rule_records.FILE.write_bytes(rule_records.content(parts(truth)))
    PAGE.write_text(text, encoding="utf-8")
    if pairs := stored_pairs():
        picture.FILE.write_text(picture.picture(pairs), encoding="utf-8")
    sys.stdout.write(printed(text))


def printed(text: str) -> str:
    """Return the printed part of the page: its summary, the pairs and the rules."""
    summary, *sections = text.split(HEADING)
    selected = [text for text in sections if text.partition("\n")[0].endswith(PRINTED)]
    return HEADING.join((summary, *selected)) + "\n"


if __name__ == "__main__":
    main()
