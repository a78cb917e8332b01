"""What is found on a late rank alone is named with it: it may be why the rank is late."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import loading
import rankbuild
from rules.test_rules import RULES, planned
from stepscope.advice import advise
from stepscope.model.trace import Run, Trace
from stepscope.rules import Finding, RuleResult
from test_advice import Options, rule

PLAN: dict[str, Any] = {"world_size": 8, "step_count": 6, "slow_us": {3: 100}}


def on(name: str, *workers: str) -> object:
    def check(trace: Trace, _options: Options) -> Iterable[RuleResult]:
        if trace.worker in workers:
            yield Finding(message="It is so.", severity="warning")

    return dataclasses.replace(rule(name), check=check)


def message(*others: object) -> str:
    workers = tuple(
        dataclasses.replace(trace, worker=f"rank{rank}", id=str(rank))
        for rank, trace in enumerate(planned(PLAN))
    )
    chosen = [RULES["straggler_rank"], *others]
    report = advise(Run(name="run", workers=workers), chosen)  # type: ignore[arg-type]
    [found] = [each for each in report.outcomes if each.rule == "straggler-rank"]
    return found.message


def test_it_is_named_where_no_other_rank_has_it() -> None:
    told = message(on("slow-loading", "rank3"), on("common", "rank2", "rank3"), on("b", "rank3"))
    assert told.endswith(" On it alone: b and slow-loading.")


def test_what_others_have_too_is_no_cause() -> None:
    assert "On it alone" not in message(on("common", "rank0", "rank3"), on("other", "rank5"))


def lettered() -> Iterator[Trace]:
    """Yield traces of ranks without their numbers, as `rank a`, `rank b` …"""
    everybody = [rankbuild.Group(name="all", ranks=tuple(range(8)))]
    truth = rankbuild.run(rankbuild.Plan(groups=everybody, jitter=0.0, **PLAN))
    for rank, letter in enumerate("abcdefgh"):
        document = rankbuild.document(truth, rank)
        del document["distributedInfo"]["rank"]
        trace = loading.trace_of(document=document)
        yield dataclasses.replace(trace, worker=f"rank {letter}", id=letter)


def test_a_straggler_may_have_a_name_without_a_number() -> None:
    report = advise(Run(name="run", workers=tuple(lettered())), [RULES["straggler_rank"]])
    [outcome] = report.outcomes
    assert outcome.status == "found", outcome.reason
    assert outcome.message.startswith("Rank d comes last to 6 of 6 collectives")
    assert outcome.blamed == ("d",)
    assert {row.link.rank for table in outcome.tables for row in table.rows if row.link} == {None}
