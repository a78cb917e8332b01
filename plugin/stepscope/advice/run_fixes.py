"""Fixes of findings over a run as changes of its replay."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import structs

from stepscope.advice.settings import DEFAULT, AdviceSettings, available_rules, selected_rules
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, rank_run
from stepscope.base.errors import NotApplicableError, UsageError
from stepscope.replay.run_what_if import RunWhatIf
from stepscope.rules import Finding, Recording, Rule, RunEvidence

FixOfRun = Callable[[RunWhatIf, RankRun, Sequence[Finding]], RunWhatIf]


def _without_late_ranks(what_if: RunWhatIf, run: RankRun, findings: Sequence[Finding]) -> RunWhatIf:
    blamed = {trace for finding in findings for trace in finding.blamed}
    late = {number for index, number in enumerate(_numbers(run)) if str(index) in blamed}
    if None in late:
        msg = "the late ranks have no rank numbers: record torch.distributed's rank with the trace"
        raise UsageError(msg)
    ranks = sorted({*what_if.without_ranks, *(number for number in late if number is not None)})
    return structs.replace(what_if, without_ranks=tuple(ranks))


def _ranks_alike(what_if: RunWhatIf, _run: RankRun, _findings: Sequence[Finding]) -> RunWhatIf:
    return structs.replace(what_if, ranks_alike=True)


CHANGES: dict[str, FixOfRun] = {
    "straggler-rank": _without_late_ranks,
    "rank-compute-imbalance": _ranks_alike,
}
"""Rules over a run whose fix is a change of the replayed run."""


def is_of_run(rule_id: str) -> bool:
    """Return whether a rule, by id or alias, is about a whole run."""
    rules = (rule for rule in available_rules() if rule.check_run is not None)
    return any(rule_id in (rule.id, *rule.aliases) for rule in rules)


def with_fixes(
    what_if: RunWhatIf,
    parts: Sequence[RankSummary],
    rule_ids: Iterable[str],
    settings: AdviceSettings = DEFAULT,
) -> RunWhatIf:
    """Return the changes with the fixes of these rules' findings over a run.

    `settings` are those of the run (`for_run`).

    Raises:
        MissingDataError: only one rank was recorded.
        UsageError: a rule has no finding in the run, or none that can be simulated.
    """
    run = rank_run(parts)
    rules = selected_rules(settings.changes, available_rules(has_packages=settings.has_packages))
    by_id = {name: rule for rule in rules for name in (rule.id, *rule.aliases)}
    for name in rule_ids:
        rule = by_id.get(name)
        findings = [] if rule is None else _findings(rule, run)
        if rule is None or not findings:
            msg = f"{name} has no finding in this run"
            raise UsageError(msg)
        change = CHANGES.get(rule.id)
        if change is None:
            msg = f"the fix of {name} cannot be simulated; those of {', '.join(CHANGES)} can"
            raise UsageError(msg)
        what_if = change(what_if, run, findings)
    return what_if


def _findings(rule: Rule[Any], run: RankRun) -> list[Finding]:
    """Return the findings of a rule; they name traces by their index in the run."""
    evidence = RunEvidence(
        name="",
        recordings=tuple(
            Recording(
                trace=str(index),
                worker=part.evidence.worker,
                span=part.evidence.span,
                part=part,
                outcomes=(),
            )
            for index, part in enumerate(run.parts)
        ),
    )
    try:
        results = list(rule.check_run(evidence, rule.options)) if rule.check_run else []
    except NotApplicableError:
        return []
    return [result for result in results if isinstance(result, Finding)]


def _numbers(run: RankRun) -> list[int | None]:
    return [rank.rank for rank in run.ranks]
