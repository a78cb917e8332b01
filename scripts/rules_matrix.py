"""What every rule says of every recording at hand: tests/rules/matrix.txt, to be read as a diff.

A recording that is not at hand (those of other projects are not part of a clone) keeps its lines.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from stepscope import ingest
from stepscope.advice import advise, outcomes_of
from stepscope.base.formatting import share
from stepscope.base.report import Outcome
from stepscope.model.trace import Run, Trace, trace_from_columns
from stepscope.rules import all_rules

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


def matrix() -> dict[str, list[str]]:
    """Return what every rule says of each recording, and of each folder that holds several."""
    told: dict[str, list[str]] = {}
    for folder, paths in _by_folder().items():
        traces = [_trace(path) for path in paths.values()]
        for name, trace in zip(paths, traces, strict=True):
            print(name, file=sys.stderr)
            told[name] = list(lines(outcomes_of(trace, all_rules())))
        if len(traces) > 1:
            run = advise(Run(name=folder, workers=tuple(traces)), all_rules())
            told[f"{folder} as a run"] = list(lines([e for e in run.outcomes if not e.trace]))
    return told


def _by_folder() -> dict[str, dict[str, Path]]:
    found: dict[str, dict[str, Path]] = {}
    for name, path in recordings().items():
        found.setdefault(name.rpartition("/")[0], {})[name] = path
    return found


def _trace(path: Path) -> Trace:
    columns = ingest.read(str(path))
    return trace_from_columns(columns, worker=path.name.split(".")[0], identity=path.name)


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield what rules said: each finding, then the other answers in brief."""
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


def text_of(told: dict[str, list[str]]) -> str:
    """Return a matrix as it is committed."""
    blocks = ("\n".join((HEADING + name, *told[name], "")) for name in sorted(told))
    return "\n".join(blocks)


def main() -> None:
    """Write the matrix anew."""
    before = sections(MATRIX.read_text(encoding="utf-8")) if MATRIX.exists() else {}
    others = {name: told for name, told in before.items() if not name.startswith("sample_logs/")}
    kept = {} if OTHERS.exists() else others
    MATRIX.write_text(text_of({**kept, **matrix()}), encoding="utf-8")


if __name__ == "__main__":
    main()
