"""What every rule says of every recording at hand: tests/rules/matrix.txt, to be read as a diff.

A recording that is not at hand (those of other projects are not part of a clone) keeps its lines.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from stepscope import ingest
from stepscope.advice import outcomes_of
from stepscope.quantities import share
from stepscope.report import Outcome
from stepscope.rules import all_rules
from stepscope.trace import Trace, trace_from_columns

ROOT = Path(__file__).parent.parent
MATRIX = ROOT / "tests" / "rules" / "matrix.txt"
OTHERS = ROOT.parent / "shared" / "traces"
HEADING = "== "
BRIEF = ("rejected", "cannot-tell", "not-applicable", "failed")


def recordings() -> dict[str, Path]:
    """Return what is at hand by its name: our own samples, and other projects' traces."""
    known = {
        f"{prefix}{path.relative_to(folder).as_posix()}": path
        for folder, prefix in ((ROOT / "sample_logs", "sample_logs/"), (OTHERS, ""))
        for path in folder.rglob("*.json.gz")
    }
    return dict(sorted(known.items()))


def lines(trace: Trace) -> Iterator[str]:
    """Yield what the rules say of a recording: each finding, then the other answers in brief."""
    outcomes = outcomes_of(trace, all_rules())
    yield from sorted(_finding(each) for each in outcomes if each.status == "found")
    for status in BRIEF:
        rules = sorted({each.rule for each in outcomes if each.status == status})
        if rules:
            yield f"{status}: {' '.join(rules)}"
    yield f"passed: {sum(each.status == 'passed' for each in outcomes)}"


def _finding(outcome: Outcome) -> str:
    saved = f", {share(outcome.claim.net_share)}" if outcome.claim is not None else ""
    return f"{outcome.severity}: {outcome.rule}{saved}, {outcome.confidence} confidence"


def sections(text: str) -> dict[str, list[str]]:
    """Return a matrix's lines by recording."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(HEADING):
            name = line.removeprefix(HEADING)
            found[name] = []
        elif line:
            found[name].append(line)
    return found


def text_of(matrix: dict[str, list[str]]) -> str:
    """Return a matrix as it is committed."""
    blocks = ("\n".join((HEADING + name, *matrix[name], "")) for name in sorted(matrix))
    return "\n".join(blocks)


def main() -> None:
    """Write the matrix anew."""
    before = sections(MATRIX.read_text(encoding="utf-8")) if MATRIX.exists() else {}
    others = {name: told for name, told in before.items() if not name.startswith("sample_logs/")}
    matrix = {} if OTHERS.exists() else others
    for name, path in recordings().items():
        print(name, file=sys.stderr)
        matrix[name] = list(lines(trace_from_columns(ingest.read(str(path)), worker=path.name)))
    MATRIX.write_text(text_of(matrix), encoding="utf-8")


if __name__ == "__main__":
    main()
