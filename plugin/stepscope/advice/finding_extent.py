"""The extent of a finding as text: ranks, machines, parts of the job, steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stepscope.base.findings import Outcome
from stepscope.base.formatting import RANGES_SHOWN, Ranges, count, number_ranges, shown_ranges
from stepscope.base.report import WorkerReport
from stepscope.rules.shared import phrases

HOSTS_NAMED = 3
NAMES_SHOWN = 3
RANKS_NAMED = 4
"""Ranges that are named where there are more than are shown."""
CUT_OFF = "…"
EVERY_STEP = "in every step"

Process = tuple[str, int | None]
"""Worker and rank."""


@dataclass(frozen=True, kw_only=True)
class RankExtent:
    """The traces of a finding; unknown parts are empty."""

    where: str = ""
    ranks: str = ""
    hosts: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, kw_only=True)
class StepExtent:
    """The steps of a finding; empty where they are unknown."""

    steps: str = ""
    when: str = ""


def ranks_of(traces: Iterable[str], workers: Sequence[WorkerReport]) -> RankExtent:
    """Return the extent of some traces among all: by rank if each has one, else by name."""
    ids = set(traces)
    selected = [worker for worker in workers if worker.trace in ids]
    if not selected or len(workers) == 1:
        return RankExtent()
    ranks = _ranks(selected)
    if len(selected) == len(workers):
        where = "both traces" if len(workers) == 2 else f"all {len(workers):,} traces"
        return RankExtent(where=where, ranks=ranks)
    hosts = _hosts(selected, workers)
    group = _group(selected, workers)
    where = _by_rank(selected, workers, ranks) if ranks else _by_name(selected)
    machine = selected[0].host if len({worker.host for worker in workers}) > 1 else ""
    if details := _details(len(_processes(selected)), hosts, group, machine):
        where = f"{where}, {details}"
    spans = {worker.span for worker in workers}
    selected_spans = {worker.span for worker in selected}
    if selected_spans != spans:
        where = f"{where}, {_in_spans(selected_spans, spans)}"
    return RankExtent(where=where, ranks=ranks, hosts=hosts, group=group)


def _ranks(workers: Iterable[WorkerReport]) -> str:
    ranks = [worker.rank for worker in workers]
    numbers = [rank for rank in ranks if rank is not None]
    return number_ranges(numbers, len(numbers)) if len(numbers) == len(ranks) else ""


def _by_rank(selected: Sequence[WorkerReport], workers: Sequence[WorkerReport], ranks: str) -> str:
    """Return the ranks; of many ranges the first, with the number of ranks."""
    number, total = (len({worker.rank for worker in group}) for group in (selected, workers))
    ranges = ranks.split(", ")
    if len(ranges) > RANGES_SHOWN:
        return f"{number:,} of {total:,} ranks ({', '.join(ranges[:RANKS_NAMED])}, {CUT_OFF})"
    return f"{'rank' if number == 1 else 'ranks'} {ranks} of {total:,}"


def _by_name(selected: Sequence[WorkerReport]) -> str:
    names = list(dict.fromkeys(worker.name for worker in selected))
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _hosts(selected: Sequence[WorkerReport], workers: Sequence[WorkerReport]) -> tuple[str, ...]:
    """Return the machines whose processes are exactly the selected; empty if many or unknown."""
    processes = _processes(selected)
    hosts = {worker.host for worker in selected}
    if any(not worker.host for worker in workers) or len(processes) < 2:
        return ()
    is_exact = _processes(worker for worker in workers if worker.host in hosts) == processes
    return tuple(sorted(hosts)) if is_exact and len(hosts) <= HOSTS_NAMED else ()


def _group(selected: Sequence[WorkerReport], workers: Sequence[WorkerReport]) -> str:
    """Return the part of the job whose processes are exactly the selected."""
    processes = _processes(selected)
    for name in selected[0].groups:
        members = _processes(worker for worker in workers if name in worker.groups)
        if members == processes and len(members) > 1:
            return name
    return ""


def _processes(workers: Iterable[WorkerReport]) -> set[Process]:
    return {(worker.name, worker.rank) for worker in workers}


def _details(processes: int, hosts: tuple[str, ...], group: str, machine: str) -> str:
    parts = [f"all of {group}"] if group else []
    if hosts:
        parts.append(f"all {count(processes, 'process', 'processes')} of {phrases.joined(hosts)}")
    elif processes == 1 and machine:
        parts.append(f"on {machine}")
    return ", ".join(parts)


def _in_spans(selected: set[str], spans: set[str]) -> str:
    numbers = [int(span) for span in selected if span.isdecimal()]
    is_numeric = len(numbers) == len(selected)
    names = number_ranges(numbers) if is_numeric else ", ".join(sorted(selected))
    return f"{'span' if len(selected) == 1 else 'spans'} {names} of {len(spans)}"


# Steps


def steps_of(outcomes: Iterable[Outcome], workers: Mapping[str, WorkerReport]) -> StepExtent:
    """Return the steps of one rule's findings, those of each trace joined."""
    by_trace: dict[str, set[Ranges]] = {}
    for outcome in outcomes:
        if outcome.claim is None or outcome.trace not in workers:
            return StepExtent()
        if not outcome.claim.is_covered:
            by_trace.setdefault(outcome.trace, set()).add(outcome.claim.step_ranges)
    distinct = {ranges for of_trace in by_trace.values() for ranges in of_trace}
    if not distinct or () in distinct:
        return StepExtent()
    cache: dict[frozenset[Ranges], Ranges] = {}
    ranges = {
        trace: cache.setdefault(frozenset(of_trace), joined(of_trace))
        for trace, of_trace in by_trace.items()
    }
    is_every = all(_length(steps) == workers[trace].step.count for trace, steps in ranges.items())
    together = joined(set(ranges.values()))
    when = EVERY_STEP if is_every else _when(ranges, together, workers)
    return StepExtent(steps=shown_ranges(together), when=when)


def _when(
    ranges: Mapping[str, Ranges], together: Ranges, workers: Mapping[str, WorkerReport]
) -> str:
    """Return the steps and their number, and whether traces differ in them."""
    noun = "step" if _length(together) == 1 else "steps"
    text = f"in {noun} {shown_ranges(together)}"
    if text.count(", ") and CUT_OFF not in text:
        text = " and ".join(text.rsplit(", ", 1))
    counts = {workers[trace].step.count for trace in ranges}
    spans = {workers[trace].span for trace in ranges}
    if len(counts) == 1 and len(spans) == 1:
        text += _of(together, counts.pop())
    distinct = {(workers[trace].span, steps) for trace, steps in ranges.items()}
    return text if len(distinct) == len(spans) else f"{text}, differing between traces"


def _of(ranges: Ranges, count: int) -> str:
    """Return the number of steps; step numbers of a trace may exceed it."""
    if ranges[-1][1] <= count:
        return f" of {count:,}"
    return f", {_length(ranges):,} of {count:,} recorded"


def joined(ranges: Iterable[Ranges]) -> Ranges:
    """Return the union of ranges."""
    union: list[tuple[int, int]] = []
    for first, last in sorted(pair for pairs in ranges for pair in pairs):
        if union and first <= union[-1][1] + 1:
            union[-1] = (union[-1][0], max(union[-1][1], last))
        else:
            union.append((first, last))
    return tuple(union)


def _length(ranges: Ranges) -> int:
    return sum(last - first + 1 for first, last in ranges)
