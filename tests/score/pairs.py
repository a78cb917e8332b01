"""`python -m score.pairs [build/pairs] [--new]`: store what the accuracy page needs of pairs.

The folder has a result and two traces per pair (`python -m pairs`). A stored pair without a folder
keeps its entry, unless its family no longer has it. `--new` reads only pairs whose result is not
stored yet.
"""

import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from loading import ROOT, fresh_trace_at
from pairs.family import family_names, load_family, pairs_of
from pairs.result import FILE_NAME, PairResult
from score.answers import serious
from score.interval_method import SETTINGS, interval_savings, whole_savings
from score.turn_pairs import FILE, Bounds, RuleSaving, StoredPair, TurnPair, encode, stored_pairs
from stepscope.advice import advise_with_settings
from stepscope.base.findings import Outcome
from stepscope.base.report import RunReport
from stepscope.library import load
from stepscope.model.trace import Run
from stepscope.rules import all_rules

FOLDER = ROOT / "build" / "pairs"
NEW = "--new"
DIGITS = 4
TRACES = "*.pt.trace.json.gz"
OF_RUN = ""
"""Trace of outcomes of rules over the run."""
OVER_RUNS = frozenset(rule.id for rule in all_rules() if rule.scope == "run")


def main(folder: Path, *, is_new_only: bool = False) -> int:
    """Write the file; a pair that cannot be read keeps its entry, and is reported."""
    current = {pair.name for name in family_names() for pair in pairs_of(load_family(name))}
    pairs = {pair.name: pair.stored for pair in stored_pairs() if pair.name in current}
    results = {pair.result for pair in pairs.values()} if is_new_only else set()
    folders = [path.parent for path in sorted(folder.rglob(FILE_NAME))]
    folders = [path for path in folders if result_in(path) not in results]
    failures = 0
    with ProcessPoolExecutor() as pool:
        for path, stored in zip(folders, pool.map(read_or_report, folders), strict=True):
            if stored is None:
                failures += 1
                continue
            pairs[TurnPair(stored=stored).name] = stored
            sys.stderr.write(f"{path.relative_to(folder)}\n")
    FILE.write_bytes(encode([pairs[name] for name in sorted(pairs)]))
    return 1 if failures else 0


def read_or_report(folder: Path) -> StoredPair | None:
    """Return a pair, or None after writing why it cannot be read."""
    try:
        return read_pair(folder)
    except Exception as error:  # the others are still stored
        sys.stderr.write(f"{folder}: {type(error).__name__}: {error}\n")
        return None


def result_in(folder: Path) -> PairResult:
    """Return the result in a pair's folder, without meaningless digits, with the current rules."""
    result = msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=PairResult)
    faults = [load_family(result.family).faults[name] for name in result.faults]
    return msgspec.structs.replace(
        result,
        fault_ms=rounded(result.fault_ms),
        fix_ms=rounded(result.fix_ms),
        kinds=tuple(fault.kind for fault in faults),
        rules=tuple(dict.fromkeys(rule for fault in faults for rule in fault.rules)),
    )


def read_pair(folder: Path) -> StoredPair:
    """Return a pair's result with the advice on its traces."""
    result = result_in(folder)
    faults = load_family(result.family).faults
    behind = {rule for name in result.behind for rule in faults[name].rules}
    fix = advice(load(folder / "fix"))
    alarms = dict.fromkeys(outcome.rule for outcome in serious(fix) if outcome.rule not in behind)
    return StoredPair(
        result=result,
        savings=savings_of(folder / "fault"),
        alarms=tuple(alarms),
        unnamed=tuple(name for name in result.faults if not faults[name].rules),
    )


def rounded(values_ms: Iterable[float]) -> tuple[float, ...]:
    """Return times without meaningless digits."""
    return tuple(round(value, DIGITS) for value in values_ms)


def advice(run: Run) -> RunReport:
    """Return the report on a run.

    Raises:
        UnreadableError: a trace could not be analysed.
    """
    report, problems = advise_with_settings(run, SETTINGS)
    for problem in problems:
        raise problem
    return report


def savings_of(folder: Path) -> tuple[RuleSaving, ...]:
    """Return the estimates of all rules with a finding on a run, in the order of its report.

    Of several ranks, a rule's saving is that in the rank where it is greatest.
    """
    run = load(folder)
    report = advice(run)
    wholes = [whole_savings(trace) for trace in run.workers]
    by_intervals = [interval_savings(fresh_trace_at(path)) for path in folder.glob(TRACES)]
    rules = dict.fromkeys(merged.outcome.rule for merged in report.merged)
    rules |= dict.fromkeys(rule for savings in by_intervals for rule in savings)
    ruled_out = {outcome.rule for outcome in report.outcomes if outcome.status == "rejected"}
    rules |= dict.fromkeys(sorted(ruled_out))
    severities = {merged.outcome.rule: merged.outcome.severity for merged in report.merged}
    positions = {rule: position for position, rule in enumerate(severities, 1)}
    return tuple(
        RuleSaving(
            rule=rule,
            severity=severities.get(rule) or "",
            position=positions.get(rule, 0),
            is_ruled_out=rule in ruled_out,
            recorded=(bounds := bounds_of(rule, report.outcomes))[0],
            unrecorded=bounds[1],
            intervals=greatest(savings[rule] for savings in by_intervals if rule in savings)
            or (bounds[0] if rule in OVER_RUNS else None),
            whole_ns=max((of[rule] for of in wholes if rule in of), default=None),
        )
        for rule in rules
    )


def bounds_of(rule: str, outcomes: Iterable[Outcome]) -> tuple[Bounds | None, Bounds | None]:
    """Return a rule's savings in the recorded and the unrecorded step."""
    recorded: dict[str, Bounds] = {}
    unrecorded: dict[str, Bounds] = {}
    for outcome in outcomes:
        claim = outcome.claim
        if outcome.rule != rule or outcome.status != "found" or claim is None:
            continue
        added(recorded, outcome.trace, (claim.net_low_ns, claim.net_high_ns))
        if claim.unrecorded_net_low_ns is not None and claim.unrecorded_net_high_ns is not None:
            bounds = claim.unrecorded_net_low_ns, claim.unrecorded_net_high_ns
            added(unrecorded, outcome.trace, bounds)
    return of_worst_trace(recorded), of_worst_trace(unrecorded)


def added(savings: dict[str, Bounds], trace: str, bounds: Bounds) -> None:
    """Add a finding's bounds to those of its trace."""
    low, high = savings.get(trace, (0, 0))
    savings[trace] = (low + bounds[0], high + bounds[1])


def of_worst_trace(savings: Mapping[str, Bounds]) -> Bounds | None:
    """Return the greatest saving of a trace, plus that over the run."""
    of_run = savings.get(OF_RUN)
    worst = greatest(bounds for trace, bounds in savings.items() if trace != OF_RUN)
    if of_run is None or worst is None:
        return of_run or worst
    return of_run[0] + worst[0], of_run[1] + worst[1]


def greatest(savings: Iterable[Bounds]) -> Bounds | None:
    """Return the bounds with the greatest upper end; None without any."""
    return max(savings, key=lambda bounds: (bounds[1], bounds[0]), default=None)


if __name__ == "__main__":
    folders = [Path(argument) for argument in sys.argv[1:] if argument != NEW]
    sys.exit(main(folders[0] if folders else FOLDER, is_new_only=NEW in sys.argv))
