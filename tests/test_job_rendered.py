"""What every form says of a whole job; a run of a thousand recordings is told briefly."""

import json as plain_json
from collections.abc import Callable

import msgspec
import pytest

from jobreports import MS, found, job, over_the_run, passed, rank
from reports import CANNOT_TELL, REJECTED
from stepscope.base.findings import Outcome
from stepscope.base.report import HealthItem, Problem, Report, RepresentativeTrace, StepReport
from stepscope.render import brief, github, html, json, markdown, phrases, sarif, text

TOTAL = (
    "All findings together could save the job 6.0–10.0 % of its step: 5.76–9.60 GPU-hours "
    "per day, 14.4–24.0 at 2.50 per hour on 4 GPUs (one per rank, by the recorded world size). "
    "Estimated: the job runs all day as in the trace, and its step becomes shorter by the smallest "
    "saving of any rank, including time that the rank waits for others."
)
OWN = "It could save the job 6.0–8.0 % of its step: 5.76–7.68 GPU-hours per day"
NOTHING = "Alone it saves the job no time: other ranks determine the step."
WHERE = "In rank 3 of 4, on node1, in every step."
RELATED = "Rank 3: see slow-loader, only there."
MISSING = "Ranks 4 and 7 have no recording, of 8 ranks."


def late_rank(price: float | None = 2.5) -> Report:
    """Rank 3 of four is late, and its own recording says why."""
    workers = tuple(
        rank(n, waits_ms=0 if n == 3 else 10, world_size=4, host=f"node{n // 2}") for n in range(4)
    )
    missing = over_the_run(0, 0, rule="missing-ranks")
    outcomes = (
        *(passed(n, "slow-loader") for n in range(3)),
        *(passed(n, "other") for n in range(1, 4)),
        found(3, 6, 8, "slow-loader"),
        found(0, 1, 2, "other"),
        over_the_run(3, 10, 3),
        msgspec.structs.replace(
            missing,
            message=MISSING,
            claim=None,
            severity="info",
            category="trace quality",
            reports_missing_data=True,
        ),
    )
    return Report((job(*outcomes, workers=workers, price=price),), version="1.2.3")


def flat(rendered: str) -> str:
    return " ".join(rendered.replace("\\", "").split())


@pytest.mark.parametrize("render", [text.render, markdown.render, html.render])
def test_each_form_says_what_the_job_saves_where_when_and_whom_it_blames(
    render: Callable[[Report], str],
) -> None:
    said = flat(render(late_rank()))
    for sentence in (TOTAL, OWN, NOTHING, WHERE, RELATED):
        assert said.count(sentence) == 1
    assert said.index(MISSING) < said.index(TOTAL)


def test_the_brief_form_says_it_in_short() -> None:
    said = flat(brief.render(late_rank()))
    for sentence in (MISSING, "could save the job 6.0–10.0 %", OWN, NOTHING, WHERE, RELATED):
        assert sentence in said


def test_annotations_say_whom_a_finding_blames_and_when_it_holds() -> None:
    said = flat(github.render(late_rank()))
    assert RELATED in said
    assert "In rank 3 of 4, on node1 of job. In every step." in said


def test_sarif_holds_it_among_the_properties_of_the_result() -> None:
    results = plain_json.loads(sarif.render(late_rank()))["runs"][0]["results"]
    own = next(each for each in results if each["ruleId"] == "slow-loader")["properties"]
    late = next(each for each in results if each["ruleId"] == "late")["properties"]
    assert own["where"] == "rank 3 of 4, on node1"
    assert (own["when"], own["ranks"]) == ("in every step", "3")
    assert own["job_saving"]["high_gpu_hours"] == pytest.approx(7.68)
    assert [each["rule"] for each in late["related"]] == ["slow-loader"]


@pytest.mark.parametrize(
    "render", [text.render, markdown.render, brief.render, github.render, html.render]
)
def test_half_of_a_job_that_is_blamed_is_told_by_what_it_says_in_few_words(
    render: Callable[[Report], str],
) -> None:
    late = range(512, 1024)
    outcomes = [found(n, 1, 20 - place, f"r{place}") for n in late for place in range(12)]
    far = (found(n, 1, high, "far") for n, high in ((0, 3), (700, 30)))
    run = job(
        *outcomes,
        *far,
        *(found(n, 1, 3, "far") for n in range(1, 512)),
        over_the_run(5, 10, *late),
        workers=tuple(rank(n) for n in range(1024)),
    )
    said = flat(render(Report((run,), version="1.2.3")))
    assert (
        "Ranks 512-1023: see r0, only there; r1, only there; r2, only there; r3, only there; "
        "r4, only there; r5, only there; r6, only there; r7, only there."
    ) in said
    assert said.count("And 5 more findings on these ranks.") == 1
    assert "r8, only there" not in said


def test_json_holds_all_of_it() -> None:
    report = late_rank()
    assert msgspec.json.decode(json.render(report), type=Report) == report


def test_of_a_job_whose_size_was_recorded_hours_are_told_unasked() -> None:
    said = flat(text.render(late_rank(price=None)))
    assert "5.76–9.60 GPU-hours per day on 4 GPUs" in said
    assert "per hour on" not in said


def test_of_one_device_nothing_is_told_unasked() -> None:
    one = rank(0, world_size=1)
    assert "the job" not in text.render(Report((job(found(0, 1, 2), workers=(one,)),)))
    asked = Report((job(found(0, 1, 2), workers=(one,), price=4.0),))
    assert "0.240–0.480 GPU-hours per day, 0.960–1.92 at 4.00 per hour" in flat(text.render(asked))


def test_who_asks_is_told_why_there_is_no_answer() -> None:
    worker = rank(0, step=StepReport(0, 100 * MS, 0, {}))
    said = flat(text.render(Report((job(found(0, 1, 2), workers=(worker,), gpus=8),))))
    assert "The job's saving is not estimated: no steps were recorded" in said
    unknown = Report((job(found(0, 1, 2), workers=(rank(0),), price=1.0),))
    assert "The job's number of GPUs is not known: give it with --gpus N." in flat(
        text.render(unknown)
    )


def test_of_a_single_recording_steps_are_told_where_it_is_not_all_of_them() -> None:
    outcome = found(0, 1, 2)
    assert outcome.claim is not None
    some = msgspec.structs.replace(
        outcome, claim=msgspec.structs.replace(outcome.claim, step_ranges=((3, 3), (7, 7)))
    )
    assert "In steps 3 and 7 of 10." in flat(text.render(Report((job(some, workers=(rank(0),)),))))
    assert "every step" not in text.render(Report((job(outcome, workers=(rank(0),)),)))


# Many recordings


def of_thousand() -> Report:
    """Ranks with a finding, rules without one, two damaged files and hundreds not read."""
    cut = HealthItem("cut", "warning", 1, "It is cut.", nature="damage", effect="low")
    worse = HealthItem("cut", "critical", 9, "It is cut badly.", nature="damage", effect="low")
    health = {100: (cut,), 700: (worse,)}
    workers = tuple(
        rank(n, waits_ms=1, world_size=1024, host=f"node{n // 8}", health=health.get(n, ()))
        for n in range(1024)
    )
    outcomes: list[Outcome] = []
    for n in range(1024):
        outcomes += (found(n, 1, 2 + n % 7) if n % 2 else passed(n),)
        outcomes += [
            msgspec.structs.replace(each, trace=f"t{n}", worker=f"w{n}")
            for each in (REJECTED, CANNOT_TELL)
        ]
        outcomes += [passed(n, f"quiet-{k}") for k in range(20)]
    problems = tuple(
        Problem(f"log/rank{n}.json", f"the file ends after {n} bytes", "Record it again")
        for n in range(300)
    )
    return Report((job(*outcomes, workers=workers),), problems, version="1.2.3")


@pytest.fixture(scope="module")
def thousand() -> Report:
    return of_thousand()


@pytest.mark.parametrize("render", [text.render, markdown.render, html.render, brief.render])
def test_a_thousand_recordings_are_told_in_a_page(
    thousand: Report, render: Callable[[Report], str]
) -> None:
    said = flat(render(thousand))
    assert len(said) < 30_000
    assert "512 of 1,024 ranks (1, 3, 5, 7, …)" in said
    assert "rank200" not in said
    assert "It is cut badly." in said
    assert "It is cut." not in said


def test_of_many_recordings_those_are_shown_that_represent_them(thousand: Report) -> None:
    slowest = RepresentativeTrace("slowest", "t611", 611, "w611", "Its own work is 9 ms more.")
    odd = RepresentativeTrace("odd", "t7", None, "w7", "It waits for nobody.")
    run = msgspec.structs.replace(thousand.runs[0], representatives=(slowest, odd))
    for render in (text.render, markdown.render, html.render):
        said = flat(render(Report((run,))))
        assert "Rank 611 is the slowest. Its own work is 9 ms more." in said
        assert "w7 is unusual. It waits for nobody." in said
        assert "The slowest of 1,024: w611, rank 611" in said
        assert "and 1,022 more traces" in said
        assert "w0" not in said


def test_what_is_wrong_with_several_recordings_is_told_with_their_ranks(thousand: Report) -> None:
    said = flat(text.render(thousand))
    assert "The trace (ranks 100, 700 of 1,024; the worst is shown): It is cut badly." in said


def test_files_that_cannot_be_read_for_one_reason_are_one_line() -> None:
    def cut_at(*sizes: int) -> Report:
        problems = tuple(
            Problem(f"log/rank{at}.json", f"the file ends after {size} bytes", "Record it again.")
            for at, size in enumerate(sizes)
        )
        return Report((), problems, version="1.2.3")

    assert phrases.problems(cut_at(*[0] * 300)) == (
        "log/rank0.json, rank1.json, rank2.json and 297 more files: the file ends after 0 bytes. "
        "Record it again.",
    )
    assert phrases.problems(cut_at(7, *range(99))) == (
        "log/rank0.json: the file ends after 7 bytes. The same, with other numbers: rank1.json, "
        "rank2.json and 97 more files. Record it again.",
    )
