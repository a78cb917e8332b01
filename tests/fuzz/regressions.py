"""Small documents that differ in outcomes: `python -m fuzz.regressions --count 2000`.

Of many changed documents those remain that bring a rule, a health check or the reader to an outcome
that no document before did. A test runs these rules on each, and both readers. The worst documents
are among them, with the tables that were slow once.
"""

import argparse
import json
import logging
import lzma
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fuzz import documents, product, worst
from stepscope.advice import rule_outcomes
from stepscope.analyses.health import health
from stepscope.base.errors import UnreadableError
from stepscope.base.findings import Outcome
from stepscope.model.trace import Trace
from stepscope.rules import all_rules
from stepscope.tables import find

CORPUS = documents.ROOT / "tests" / "fuzz" / "regressions.json.xz"
MOST = 100
MOST_BYTES = 12_000
MOST_RULES = 4
WORST_COUNT = 10
SLOW_ONCE = (
    *("critical-path", "memory-leaks", "host-breakdown", "queue-length-series"),
    "process-groups",
)


@dataclass(frozen=True, kw_only=True)
class Regression:
    """A document, and the rules and tables that it brings to odd outcomes."""

    name: str
    data: bytes
    rules: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    def failures(self) -> list[str]:
        """Return differences of the readers, and failures of the rules and tables."""
        checks = product.Checks(size_bytes=len(self.data))
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder, self.name)
            path.write_bytes(self.data)
            trace = checks.run("read", lambda: product.read(path))
            if trace is None:
                return checks.failures
            rules = [rule for rule in all_rules() if rule.id in self.rules]
            outcomes = checks.run("rules", lambda: rule_outcomes(trace, rules)) or ()
            failed = [f"{each.rule}: {each.reason}" for each in outcomes if each.status == "failed"]
            for name in self.tables:
                checks.run(f"table {name}", partial(find(name).build, trace))
            return checks.failures + failed


def regressions() -> list[Regression]:
    """Return the documents of the corpus, and the worst ones."""
    of_changes = [
        Regression(
            name="worker0.1.pt.trace.json",
            data=json.dumps(worst.document(name, WORST_COUNT)).encode(),
            tables=SLOW_ONCE,
        )
        for name in worst.CHANGES
    ]
    return of_changes + [
        Regression(
            name=of["name"],
            data=of["data"].encode("latin-1"),
            rules=tuple(of["rules"]),
            tables=tuple(of["tables"]),
        )
        for of in json.loads(lzma.decompress(CORPUS.read_bytes()))
    ]


def write(corpus: Iterable[Regression]) -> None:
    """Replace the corpus."""
    rows = [
        {
            "name": of.name,
            "data": of.data.decode("latin-1"),
            "rules": of.rules,
            "tables": of.tables,
        }
        for of in corpus
    ]
    CORPUS.write_bytes(lzma.compress(json.dumps(rows).encode(), preset=9))


def _outcome(outcome: Outcome) -> tuple[str, str]:
    return outcome.rule, f"{outcome.status} {re.sub(r'[^a-z ]+', '', outcome.reason or '')[:60]}"


def _features(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield each rule's outcome, each health item and each incident, without numbers."""
    yield from map(_outcome, rule_outcomes(trace, all_rules()))
    for item in health(trace):
        yield "", f"{item.kind} {item.effect}"
    for incident in trace.columns.incidents:
        yield "", incident.kind


def distil(first: int, count: int) -> Iterator[Regression]:
    """Yield documents of seeds that bring something to a new outcome."""
    seen: set[tuple[str, str]] = set()
    for seed in range(first, first + count):
        name, data = documents.document(seed)
        if len(data) > MOST_BYTES:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(data)
            try:
                features = set(_features(product.read(path)))
            except UnreadableError as error:
                features = {("", re.sub(r"[^a-z ]+", "", error.message)[:60])}
        if new := sorted(features - seen):
            seen |= features
            rules = tuple(dict.fromkeys(rule for rule, _ in new if rule))
            yield Regression(name=name, data=data, rules=rules[:MOST_RULES])


def main() -> None:
    """Write the corpus."""
    parser = argparse.ArgumentParser(prog="fuzz.regressions", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    asked = parser.parse_args()
    logging.disable()
    warnings.simplefilter("ignore")
    corpus: list[Regression] = []
    for regression in distil(asked.seed, asked.count):
        corpus.append(regression)
        sys.stdout.write(f"{len(corpus)}: {regression.name} {' '.join(regression.rules)}\n")
        sys.stdout.flush()
        write(corpus)
        if len(corpus) == MOST:
            break


if __name__ == "__main__":
    main()
