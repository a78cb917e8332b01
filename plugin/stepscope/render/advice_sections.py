"""What of a run's advice is told, and in which order: the same in every form.

Of a run with several recordings each finding is told once (`RunReport.merged`); of a single one
every finding is. What rules over the whole run say belongs to both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepscope.advice.finding_extent import EVERY_STEP, ranks_of, steps_of
from stepscope.advice.undamaged import undamaged
from stepscope.base.findings import Outcome, Severity, Status
from stepscope.base.formatting import count
from stepscope.base.report import (
    HealthItem,
    JobSaving,
    MergedOutcome,
    RelatedFinding,
    RunReport,
    WorkerReport,
)
from stepscope.render.phrases import doubt, plain, sentences

NOWHERE_ELSE: dict[Status, frozenset[Status]] = {
    "passed": frozenset({"passed", "cannot-tell", "not-applicable"}),
    "not-applicable": frozenset({"not-applicable"}),
}
"""With which others a rule may stand in a list: what it says of other recordings says more."""
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
GROUPED: tuple[Status, ...] = ("cannot-tell", "failed", "not-applicable")
"""Outcomes that are told by their reason."""


RECORDINGS_SHOWN = 8
"""Of more recordings, those that represent the others are shown."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """An outcome, and of a run with several recordings in which of them."""

    outcome: Outcome
    where: str = ""
    merged: MergedOutcome | None = None
    also: tuple[Outcome, ...] = ()
    """What else the rule found in the same recording."""
    when: str = ""
    """In which steps; empty where that cannot be told, or goes without saying."""
    related: tuple[RelatedFinding, ...] = ()
    job_saving: JobSaving | None = None
    """Of all that the rule found, with the first of it."""

    @property
    def is_covered(self) -> bool:
        """Whether others' savings hold all of its own: it is the same time, seen from elsewhere."""
        claim = self.outcome.claim
        return claim is not None and claim.net_high_ns <= 0


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why some rules have no answer, and the line of code that would give them one."""

    rules: tuple[str, ...]
    text: str
    remedy: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Passed:
    """Rules that found nothing, and what of the recording puts that in doubt."""

    rules: tuple[str, ...]
    why: str
    """Empty where nothing does."""

    @property
    def label(self) -> str:
        """What to call them."""
        return f"Passed{', but doubtful' if self.why else ''} ({len(self.rules)})"


@dataclass(frozen=True, kw_only=True)
class Stand:
    """Where recordings stand in which nothing serious was found."""

    state: str
    message: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Unhealthy:
    """What is wrong with recordings, once for all that have it."""

    item: HealthItem
    where: str


@dataclass(frozen=True, kw_only=True)
class Advised:
    """A run's advice as it is told."""

    run: RunReport
    lead: WorkerReport | None
    """The recording whose time is told; None: there is none."""
    found: tuple[Told, ...]
    rejected: tuple[Told, ...]
    suppressed: tuple[Told, ...]
    passed: tuple[Passed, ...]
    reasons: dict[Status, tuple[Reason, ...]]
    """Of `GROUPED`; what has none is left out."""
    standings: tuple[Stand, ...]
    health: tuple[Unhealthy, ...]

    @property
    def is_single(self) -> bool:
        """Whether the run has one recording."""
        return len(self.run.workers) == 1

    @property
    def shown(self) -> tuple[WorkerReport, ...]:
        """Recordings to be shown: of many those that represent them, else the longest first."""
        if len(self.run.workers) > RECORDINGS_SHOWN and self.run.representatives:
            workers = {worker.trace: worker for worker in self.run.workers}
            traces = (each.trace for each in self.run.representatives)
            return tuple(workers[trace] for trace in traces if trace in workers)
        ordered = sorted(undamaged(self.run.workers), key=lambda worker: -worker.step.mean_ns)
        return tuple(ordered[:RECORDINGS_SHOWN])

    @property
    def per(self) -> str:
        """What savings are counted over."""
        return "a step" if self.lead and self.lead.step.count else "in all"


def advised(run: RunReport) -> Advised:
    """Arrange a run's advice."""
    statuses: dict[str, set[Status]] = {}
    for outcome in run.outcomes:
        statuses.setdefault(outcome.rule, set()).add(outcome.status)
    told = [
        each
        for each in run.outcomes
        if statuses[each.rule] <= NOWHERE_ELSE.get(each.status, statuses[each.rule])
    ]
    return Advised(
        run=run,
        lead=_lead(run),
        found=tuple(_found(run)),
        rejected=tuple(_each_once(run, "rejected")),
        suppressed=tuple(_each_once(run, "suppressed")),
        passed=_passed(each for each in told if each.status == "passed"),
        reasons=_reasons(run, told),
        standings=tuple(_standings(run)),
        health=tuple(_health(run)),
    )


def _lead(run: RunReport) -> WorkerReport | None:
    """Return whose time is told: of many ranks, which wait for each other, the slowest by its work.

    Of fewer it is the recording with the longest step.
    """
    slowest = {each.trace for each in run.representatives if each.kind == "slowest"}
    if len(run.workers) > RECORDINGS_SHOWN and slowest:
        return next((each for each in run.workers if each.trace in slowest), None)
    return max(undamaged(run.workers), key=lambda worker: worker.step.mean_ns, default=None)


def _found(run: RunReport) -> Iterable[Told]:
    found = [outcome for outcome in run.outcomes if outcome.status == "found"]
    if len(run.workers) <= 1:
        yield from _of_one(run, found)
        return
    beside: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in found:
        beside.setdefault((outcome.rule, outcome.trace), []).append(outcome)
    for merged in run.merged:
        first = merged.outcome
        yield Told(
            outcome=first,
            where=plain(merged.where),
            merged=merged,
            also=tuple(each for each in beside[first.rule, first.trace] if each != first),
            when=plain(merged.when),
            related=merged.related,
            job_saving=merged.job_saving,
        )


def _of_one(run: RunReport, found: Iterable[Outcome]) -> Iterable[Told]:
    """Yield what was found in a single recording, each finding by itself."""
    savings = {each.outcome.rule: each.job_saving for each in run.merged}
    workers = {worker.trace: worker for worker in run.workers}
    for outcome in found:
        when = steps_of([outcome], workers).when
        yield Told(
            outcome=outcome,
            when="" if when == EVERY_STEP else when,
            job_saving=savings.pop(outcome.rule, None),
        )


def _each_once(run: RunReport, status: Status) -> Iterable[Told]:
    """Yield outcomes that are the same in several recordings once, with how many that are."""
    by_key: dict[tuple[str, str, int], list[Outcome]] = {}
    place: dict[tuple[str, str], int] = {}
    for outcome in run.outcomes:
        if outcome.status == status:
            nth = place.get((outcome.rule, outcome.trace), 0)
            place[outcome.rule, outcome.trace] = nth + 1
            by_key.setdefault((outcome.rule, outcome.fingerprint, nth), []).append(outcome)
    for outcomes in by_key.values():
        yield Told(outcome=outcomes[0], where=_in_how_many(run, outcomes))


def _in_how_many(run: RunReport, outcomes: Sequence[Outcome]) -> str:
    """Say in how many recordings something is so; nothing where there is one, or it is all."""
    traces = {each.trace for each in outcomes if each.trace}
    if len(run.workers) == 1 or not 0 < len(traces) < len(run.workers):
        return ""
    return f"{len(traces)} of {count(len(run.workers), 'recording')}"


def _passed(outcomes: Iterable[Outcome]) -> tuple[Passed, ...]:
    """Return the rules that found nothing, those without a doubt first."""
    why: dict[str, str] = {}
    for outcome in outcomes:
        why[outcome.rule] = why.get(outcome.rule) or doubt(outcome)
    rules: dict[str, list[str]] = {"": []}
    for rule, reason in why.items():
        rules.setdefault(reason, []).append(rule)
    return tuple(
        Passed(rules=tuple(sorted(names)), why=why) for why, names in rules.items() if names
    )


def _reasons(run: RunReport, outcomes: Iterable[Outcome]) -> dict[Status, tuple[Reason, ...]]:
    """Return each reason once, with all rules that give it; the one of most rules first."""
    by_rule: dict[tuple[Status, str], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.status in GROUPED:
            by_rule.setdefault((outcome.status, outcome.rule), []).append(outcome)
    groups: dict[Status, dict[tuple[str, str, str], list[str]]] = {}
    for (status, rule), mine in by_rule.items():
        key = (mine[0].reason or "", mine[0].remedy or "", _in_how_many(run, mine))
        groups.setdefault(status, {}).setdefault(key, []).append(rule)
    return {
        status: tuple(
            Reason(rules=tuple(rules), text=sentences(text), remedy=plain(remedy), where=where)
            for (text, remedy, where), rules in sorted(
                groups[status].items(), key=lambda group: -len(group[1])
            )
        )
        for status in GROUPED
        if status in groups
    }


def _standings(run: RunReport) -> Iterable[Stand]:
    """Yield the state of recordings in which nothing serious was found, the slowest's numbers.

    None is called healthy of a run with something serious, be it one that only all tell together.
    """
    is_serious = any(
        each.status == "found" and each.severity in ("critical", "warning") for each in run.outcomes
    )
    hidden = {"found", "healthy"} if is_serious else {"found"}
    by_state: dict[str, list[WorkerReport]] = {}
    for worker in sorted(run.workers, key=lambda each: -each.step.mean_ns):
        if worker.standing is not None and worker.standing.state not in hidden:
            by_state.setdefault(worker.standing.state, []).append(worker)
    for state, workers in by_state.items():
        if (standing := workers[0].standing) is None:
            continue
        some = len(workers) < len(run.workers)
        where = f"{len(workers)} of {count(len(run.workers), 'recording')}" if some else ""
        yield Stand(state=state, message=plain(standing.message), where=where)


def _health(run: RunReport) -> Iterable[Unhealthy]:
    """Yield what is wrong with the recordings, the worst of each kind; notes are for `health`."""
    by_kind: dict[str, list[tuple[HealthItem, WorkerReport]]] = {}
    for worker in run.workers:
        for item in worker.health:
            if item.severity != "info":
                by_kind.setdefault(item.kind, []).append((item, worker))
    for found in by_kind.values():
        worst = min((item for item, _ in found), key=_seriousness)
        where = ranks_of((worker.trace for _, worker in found), run.workers).where
        if len({worker.trace for _, worker in found}) == len(run.workers):
            where = ""
        if where and len({item.message for item, _ in found}) > 1:
            where = f"{where}; the worst is told"
        yield Unhealthy(item=worst, where=plain(where))


def _seriousness(item: HealthItem) -> tuple[int, int]:
    return SEVERITIES.index(item.severity), -item.count
