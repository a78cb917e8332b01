"""Tables of the results of other programs that read a trace."""

from collections import Counter
from collections.abc import Iterator, Sequence

from peers.young_advisers import Grade
from score.answers import report, serious
from score.judging import false_alarms, right_first
from score.peers import PROGRAMS, RunOutputs, grade
from score.stories import Recording, Stories
from score.tables import part, table

STEPSCOPE = "stepscope"
GRADES: tuple[Grade, ...] = ("right", "wrong", "silent", "crash")


def stepscope_grade(truth: Recording) -> Grade:
    """Return stepscope's grade by the same criteria."""
    if truth.healthy:
        return "wrong" if false_alarms(truth) else "right"
    if right_first(truth):
        return "right"
    advice = report(truth.run)
    standings = {worker.standing.state for worker in advice.workers if worker.standing}
    return "wrong" if serious(advice) or "healthy" in standings else "silent"


def grades(stories: Stories, answers: dict[str, RunOutputs]) -> dict[str, dict[str, Grade]]:
    """Return each run's grades by program, stepscope first."""
    return {
        truth.run: {
            STEPSCOPE: stepscope_grade(truth),
            **{name: grade(answers[truth.run].outputs[name], truth) for name in PROGRAMS},
        }
        for truth in stories.recording
        if truth.run in answers
    }


def summary(stories: Stories, answers: dict[str, RunOutputs]) -> Iterator[str]:
    """Yield one line per program: right on faults, and false alarms."""
    run_grades = grades(stories, answers)
    yield from ("Other programs on the same files ([method](#others)):", "")
    columns = [
        f"{kind}: {count}:"
        for kind in ("recorded", "synthetic")
        for count in ("right on faults", "false alarms")
    ]
    groups = _groups(stories)
    yield from table(
        ("program", *columns),
        (
            (
                name,
                *(
                    part(sum(run_grades[truth.run][name] == verdict for truth in group), len(group))
                    for group, verdict in zip(groups.values(), ("right", "wrong") * 2, strict=True)
                ),
            )
            for name in (STEPSCOPE, *PROGRAMS)
        ),
    )


def _groups(stories: Stories) -> dict[str, list[Recording]]:
    return {
        f"{'synthetic' if is_synthetic else 'recorded'} {'healthy' if healthy else 'faults'}": [
            truth
            for truth in stories.recording
            if truth.is_synthetic == is_synthetic and truth.healthy == healthy
        ]
        for is_synthetic in (False, True)
        for healthy in (False, True)
    }


def details(stories: Stories, answers: dict[str, RunOutputs]) -> Iterator[str]:
    """Yield the section on other programs."""
    run_grades = grades(stories, answers)
    yield from (
        "## Other programs on the same files { #others }",
        "",
        "Each program runs as its users would run it, in a separate process, on the uncompressed "
        "file. Its output is graded by keywords. *Right*: it names the true cause, or reports "
        "nothing about a healthy run. *Wrong*: it names another cause, or calls a run with a fault "
        "healthy. *Silent*: it reports nothing, or that it cannot judge. *Crash*. The keywords are "
        "generous: a cause that is mentioned in passing counts, even if the program mentions it "
        "for every trace. For a run of several files, the best grade counts for a fault and the "
        "worst for a healthy run. gpu-idle and fournex are made for GPU traces, and pytscope reads "
        "communication only; for traces of a CPU, *silent* would be right.",
        "",
    )
    for title, group in _groups(stories).items():
        kind, health = title.split()
        counts = {
            name: Counter(run_grades[truth.run][name] for truth in group)
            for name in (STEPSCOPE, *PROGRAMS)
        }
        yield from (f"### {health.capitalize()}, {kind}", "")
        yield from table(("program", *(f"{grade}:" for grade in GRADES)), _counted(counts))
        yield from table(
            ("run", STEPSCOPE, *PROGRAMS),
            ((f"`{truth.run}`", *run_grades[truth.run].values()) for truth in group),
        )


def _counted(counts: dict[str, Counter[Grade]]) -> Sequence[tuple[str, ...]]:
    return [(name, *(str(of[grade]) for grade in GRADES)) for name, of in counts.items()]
