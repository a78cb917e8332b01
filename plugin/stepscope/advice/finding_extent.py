"""Where and when something was found, in words: ranks, machines, parts of the job, steps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stepscope.base.findings import Outcome
from stepscope.base.formatting import count, number_ranges
from stepscope.base.report import WorkerReport
from stepscope.rules.shared import phrases

HOSTS_NAMED = 3
NAMES_SHOWN = 3
RANGES_SHOWN = 12
RANKS_NAMED = 4
"""Of more ranges than are shown."""
CUT_OFF = "…"
EVERY_STEP = "in every step"

Ranges = tuple[tuple[int, int], ...]
"""First and last number, in order and apart from each other."""


@dataclass(frozen=True, kw_only=True)
class RankExtent:
    """In which recordings something was found; what cannot be told is empty."""

    where: str = ""
    ranks: str = ""
    hosts: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, kw_only=True)
class StepExtent:
    """In which steps something was found; empty where that cannot be told."""

    steps: str = ""
    when: str = ""


def ranks_of(traces: Iterable[str], workers: Sequence[WorkerReport]) -> RankExtent:
    """Return in which recordings something was found: by rank where each has one, else by name."""
    held = set(traces)
    chosen = [worker for worker in workers if worker.trace in held]
    if not chosen or len(workers) == 1:
        return RankExtent()
    ranks = _ranks(chosen)
    if len(chosen) == len(workers):
        where = "both recordings" if len(workers) == 2 else f"all {len(workers):,} recordings"
        return RankExtent(where=where, ranks=ranks)
    hosts = _hosts(chosen, workers)
    group = _group(chosen, workers)
    place = _by_rank(chosen, workers, ranks) if ranks else _by_name(chosen)
    machine = chosen[0].host if len({worker.host for worker in workers}) > 1 else ""
    if about := _about(len(_processes(chosen)), hosts, group, machine):
        place = f"{place}, {about}"
    spans, held_spans = _spans(workers), _spans(chosen)
    if len(spans) > 1 and held_spans != spans:
        place = f"{place}, {_in_spans(held_spans, spans)}"
    return RankExtent(where=place, ranks=ranks, hosts=hosts, group=group)


def _ranks(workers: Iterable[WorkerReport]) -> str:
    ranks = [worker.rank for worker in workers]
    known = [rank for rank in ranks if rank is not None]
    return number_ranges(known, len(known)) if len(known) == len(ranks) else ""


def _by_rank(chosen: Sequence[WorkerReport], workers: Sequence[WorkerReport], ranks: str) -> str:
    """Name the ranks; of many that lie apart, the first of them and how many there are."""
    number, of = (len({worker.rank for worker in each}) for each in (chosen, workers))
    ranges = ranks.split(", ")
    if len(ranges) > RANGES_SHOWN:
        return f"{number:,} of {of:,} ranks ({', '.join(ranges[:RANKS_NAMED])}, {CUT_OFF})"
    return f"{'rank' if number == 1 else 'ranks'} {ranks} of {of:,}"


def _by_name(chosen: Sequence[WorkerReport]) -> str:
    names = list(dict.fromkeys(worker.name for worker in chosen))
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _hosts(chosen: Sequence[WorkerReport], workers: Sequence[WorkerReport]) -> tuple[str, ...]:
    """Return the machines whose processes are exactly those; of many or unknown ones none."""
    if any(not worker.host for worker in workers):
        return ()
    named = _exactly(chosen, workers, lambda worker: worker.host)
    return named if len(named) <= HOSTS_NAMED and len(_processes(chosen)) > 1 else ()


def _group(chosen: Sequence[WorkerReport], workers: Sequence[WorkerReport]) -> str:
    """Return the part of the job whose processes are exactly those."""
    for name in chosen[0].groups:
        own = {_process(worker) for worker in workers if name in worker.groups}
        if own == _processes(chosen) and len(own) > 1:
            return name
    return ""


def _exactly(
    chosen: Sequence[WorkerReport],
    workers: Sequence[WorkerReport],
    key: Callable[[WorkerReport], str],
) -> tuple[str, ...]:
    """Return the values of those that are chosen, if no other process has one of them."""
    values = {key(worker) for worker in chosen}
    sharing = {_process(worker) for worker in workers if key(worker) in values}
    return tuple(sorted(values)) if sharing == _processes(chosen) else ()


def _process(worker: WorkerReport) -> tuple[str, int | None]:
    return worker.name, worker.rank


def _processes(workers: Iterable[WorkerReport]) -> set[tuple[str, int | None]]:
    return set(map(_process, workers))


def _about(processes: int, hosts: tuple[str, ...], group: str, machine: str) -> str:
    words = [f"all of {group}"] if group else []
    if hosts:
        words.append(f"all {count(processes, 'process', 'processes')} of {phrases.joined(hosts)}")
    elif processes == 1 and machine:
        words.append(f"on {machine}")
    return ", ".join(words)


def _spans(workers: Iterable[WorkerReport]) -> set[str]:
    return {worker.span for worker in workers}


def _in_spans(held: set[str], spans: set[str]) -> str:
    numbers = [int(span) for span in held if span.isdecimal()]
    named = number_ranges(numbers) if len(numbers) == len(held) else ", ".join(sorted(held))
    return f"{'span' if len(held) == 1 else 'spans'} {named} of {len(spans)}"


# Steps


def steps_of(outcomes: Iterable[Outcome], workers: Mapping[str, WorkerReport]) -> StepExtent:
    """Return in which steps findings of one rule hold, each recording's taken together."""
    by_trace: dict[str, set[str]] = {}
    for each in outcomes:
        if each.claim is None or each.trace not in workers:
            return StepExtent()
        if each.claim.net_high_ns > 0:
            by_trace.setdefault(each.trace, set()).add(each.claim.steps)
    if not by_trace or any(_is_untold(steps) for of in by_trace.values() for steps in of):
        return StepExtent()
    known: dict[frozenset[str], Ranges] = {}
    held = {
        trace: known.setdefault(frozenset(texts), joined(map(ranges_in, texts)))
        for trace, texts in by_trace.items()
    }
    every = all(_length(of) == workers[trace].step.count for trace, of in held.items())
    together = joined(set(held.values()))
    steps = _as_text(together)
    return StepExtent(steps=steps, when=EVERY_STEP if every else _when(held, together, workers))


def _is_untold(steps: str) -> bool:
    return not steps or CUT_OFF in steps


def _when(held: Mapping[str, Ranges], together: Ranges, workers: Mapping[str, WorkerReport]) -> str:
    """Say in which steps of how many; where recordings differ in them, that they do."""
    noun = "step" if _length(together) == 1 else "steps"
    text = f"in {noun} {_as_text(together)}"
    if text.count(", ") and CUT_OFF not in text:
        text = " and ".join(text.rsplit(", ", 1))
    counts = {workers[trace].step.count for trace in held}
    spans = {workers[trace].span for trace in held}
    if len(counts) == 1 and len(spans) == 1:
        text += _of(together, counts.pop())
    alike = {(workers[trace].span, of) for trace, of in held.items()}
    return text if len(alike) == len(spans) else f"{text}, not in each of them everywhere"


def _of(ranges: Ranges, count: int) -> str:
    """Say of how many steps; numbers that a recording begins with beyond them count none."""
    if ranges[-1][1] <= count:
        return f" of {count:,}"
    return f", {_length(ranges):,} of {count:,} recorded"


def ranges_in(text: str) -> Ranges:
    """Return what `number_ranges` wrote as text."""
    pairs = (part.partition("-") for part in text.split(", "))
    return tuple((int(first), int(last or first)) for first, _, last in pairs)


def joined(ranges: Iterable[Ranges]) -> Ranges:
    """Return the numbers that are in any of them."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(each for of in ranges for each in of):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def _length(ranges: Ranges) -> int:
    return sum(last - first + 1 for first, last in ranges)


def _as_text(ranges: Ranges) -> str:
    words = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    return ", ".join(words[:RANGES_SHOWN]) + (f", {CUT_OFF}" if len(words) > RANGES_SHOWN else "")
