"""A report as text, Markdown and JSON; what it holds stands in `reports.py`."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from reports import (
    CANNOT_TELL,
    CODE,
    COVERED,
    FOUND,
    HOSTILE,
    NOT_APPLICABLE,
    PASSED,
    RANKS,
    REJECTED,
    REPORT,
    SUPPRESSED,
    WORKER,
    on_rank,
    run_of,
    with_texts,
)
from stepscope.base.findings import EvidenceColumn, EvidenceRow, EvidenceTable, Outcome
from stepscope.base.report import (
    BudgetLine,
    HealthItem,
    OverallStatus,
    Report,
    StepReport,
    WorkerReport,
)
from stepscope.render import brief, github, html, json, markdown, text

CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800]"
HOSTILE_TEXTS = st.text(
    st.one_of(st.sampled_from("`|\\[]()<>@#!*_~:%,\"'&\n\r\x1b\u202e\u2028"), st.characters())
)
OUT_OF_ORDER = HealthItem("out-of-order", "info", 7, "7 events stand behind a later one")


def one_line(rendered: str) -> str:
    return " ".join(rendered.split())


def report_of(*outcomes: Outcome, worker: WorkerReport = WORKER) -> Report:
    return Report((run_of(*outcomes, workers=(worker,)),))


@pytest.mark.parametrize(
    ("name", "rendered"),
    [
        ("one.txt", text.render(REPORT)),
        ("one.md", markdown.render(REPORT)),
        ("one.brief", brief.render(REPORT)),
        ("one.github", github.render(REPORT)),
        ("ranks.txt", text.render(RANKS)),
        ("ranks.md", markdown.render(RANKS)),
        ("ranks.brief", brief.render(RANKS)),
    ],
)
def test_the_whole_answer_is_as_it_was_reviewed(name: str, rendered: str) -> None:
    """`REMAKE=1 pytest tests/test_render.py` writes them anew, to be reviewed as a diff."""
    path = Path(__file__).parent / "rendered" / name
    if os.environ.get("REMAKE"):
        path.write_text(rendered, encoding="utf-8")
    assert rendered == path.read_text(encoding="utf-8")


def test_a_reason_that_many_rules_give_is_told_once() -> None:
    other = msgspec.structs.replace(CANNOT_TELL, rule="launch-bound")
    report = report_of(CANNOT_TELL, other)
    for render in (text.render, markdown.render):
        assert render(report).count("no shapes were recorded") == 1
    said = one_line(text.render(report))
    assert "Inconclusive (2): launch-bound, tiny-batch-size: no shapes were recorded." in said


@pytest.mark.parametrize("render", [text.render, markdown.render])
def test_numbers_have_their_units(render: Callable[[Report], str]) -> None:
    rendered = one_line(render(REPORT))
    for value in ("33.9 %", "416 ms", "18.4 MiB", "10.1 GB/s", "1,462"):
        assert value in rendered


@pytest.mark.parametrize("width", [40, 60, 72, 80, 120])
@pytest.mark.parametrize("report", [REPORT, RANKS], ids=["one", "ranks"])
def test_text_keeps_to_its_width_and_cuts_nothing_off(width: int, report: Report) -> None:
    rendered = text.render(report, width=width)
    lines = [line for line in rendered.splitlines() if CODE not in line]
    assert max(map(len, lines)) <= width
    words = one_line(rendered)
    for part in ("75,718", FOUND.message, "most of it in aten::to", "aten::div", "44.4–59.3 ms"):
        assert part in words
    assert "…" not in rendered


def test_no_word_that_fits_is_broken_in_a_narrow_terminal() -> None:
    part = BudgetLine("cpu", "Communication", 47_300_000, 0.785, 14_200_000, 47_300_000, ())
    worker = msgspec.structs.replace(WORKER, budget=(part,))
    columns = (EvidenceColumn("Operator", "text"), *(EvidenceColumn("Time", "ns"),) * 2)
    table = EvidenceTable("All", columns, (EvidenceRow(("aten::_foreach_addcdiv_", 1, 581_000)),))
    finding = msgspec.structs.replace(FOUND, tables=(table,))
    said = text.render(report_of(finding, worker=worker), width=40)
    assert max(len(line) for line in said.splitlines() if CODE not in line) <= 40
    for word in ("Communication", "aten::_foreach_addcdiv_"):
        assert word in said


def test_a_table_too_wide_for_the_terminal_is_told_row_by_row() -> None:
    columns = tuple(EvidenceColumn(f"Heading{place}", "ns") for place in range(6))
    table = EvidenceTable("All", columns, (EvidenceRow((*(1_000_000,) * 5, None)),))
    report = report_of(msgspec.structs.replace(FOUND, tables=(table,)))
    assert "· Heading0 1.00 ms, Heading1 1.00 ms," in one_line(text.render(report, width=50))
    assert "Heading4 1.00 ms, Heading5 –" in one_line(text.render(report, width=50))
    assert "Heading0 Heading1 Heading2" in one_line(text.render(report, width=100))


def test_of_a_long_table_the_first_rows_are_shown_and_the_others_counted() -> None:
    rows = tuple(EvidenceRow((f"row{number}",)) for number in range(9))
    table = EvidenceTable("All", (EvidenceColumn("Name", "text"),), rows)
    report = report_of(msgspec.structs.replace(FOUND, tables=(table,)))
    for render in (text.render, markdown.render):
        said = render(report)
        assert "row4" in said
        assert "row5" not in said
        assert "and 4 more rows" in said


def test_code_is_not_wrapped_since_it_is_to_be_copied() -> None:
    assert CODE in text.render(REPORT, width=60)
    assert f"```python\n{CODE}\n```" in markdown.render(REPORT)


def test_text_is_coloured_only_when_asked() -> None:
    assert "\x1b" not in text.render(REPORT)
    coloured = text.render(REPORT, is_coloured=True)
    assert "\x1b[1;31mCRITICAL\x1b[0m" in coloured


# Text of a trace


def acts_in_markdown(rendered: str) -> list[str]:
    """Return what of a trace's text would act: tags, links, calls, headings, torn table rows."""
    fenced = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", rendered, flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\|.*", fenced, re.MULTILINE)
    torn = [row for row in rows if not row.endswith((" |", "-|", ":|"))]
    plain = re.sub(r"\\.", " ", re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", fenced))
    plain = plain.replace("@<!-- -->", "")
    acting = re.findall(r"<(?!/?(?:details|summary)>|https://)[A-Za-z/!?]|@|\[|&[\w#]", plain)
    return acting + torn + re.findall(r"^# .*", plain, re.MULTILINE)


def test_a_trace_cannot_act_on_the_terminal() -> None:
    rendered = text.render(with_texts(HOSTILE))
    assert not re.search(CONTROL, rendered)
    assert "[bold]x[/]" in one_line(rendered), "what looks like markup is text"


@pytest.mark.parametrize("render", [markdown.render, brief.render])
def test_a_trace_cannot_act_in_markdown(render: Callable[[Report], str]) -> None:
    rendered = render(with_texts(HOSTILE))
    assert not re.search(CONTROL, rendered)
    assert acts_in_markdown(rendered) == []


@given(HOSTILE_TEXTS)
@examples(60)
def test_no_text_of_a_trace_acts_in_any_form(found: str) -> None:
    report = with_texts(found)
    assert not re.search(CONTROL, text.render(report))
    for rendered in (markdown.render(report), brief.render(report)):
        assert not re.search(CONTROL, rendered)
        assert acts_in_markdown(rendered) == []


# What is told of a run


def test_the_shares_of_the_time_sum_to_the_whole_as_they_are_written() -> None:
    parts = tuple(BudgetLine("kernel", f"Part{n}", 1_000_003, 0, 0, 0, ()) for n in range(7))
    worker = msgspec.structs.replace(WORKER, budget=parts)
    said = text.render(report_of(PASSED, worker=worker))
    shares = re.findall(r"^(?:Part\d|Mean step).*?([\d.]+) %", said, re.MULTILINE)
    assert shares == ["14.3"] * 6 + ["14.2", "100.0"]


def test_what_could_be_won_back_stands_beside_each_part() -> None:
    def line(low: int, high: int) -> str:
        part = BudgetLine("cpu", "CPU", 10_000_000, 1.0, low, high, ("launch-bound",))
        worker = msgspec.structs.replace(WORKER, budget=(part,))
        [found] = re.findall(r"CPU .*", text.render(report_of(PASSED, worker=worker), width=60))
        return one_line(found)

    assert line(0, 0) == "CPU 10.0 ms 100.0 % –"
    assert line(0, 2_000_000) == "CPU 10.0 ms 100.0 % 0–2.00 ms"
    assert line(1_000_000, 2_000_000) == "CPU 10.0 ms 100.0 % 1.00–2.00 ms"
    assert line(2_000_000, 2_000_000) == "CPU 10.0 ms 100.0 % 2.00 ms"


def test_of_many_rules_that_claim_a_part_the_first_are_named() -> None:
    rules = tuple(f"rule-{number}" for number in range(6))
    part = BudgetLine("cpu", "CPU", 10_000_000, 1.0, 1, 2, rules)
    worker = msgspec.structs.replace(WORKER, budget=(part,))
    for render in (markdown.render, html.render):
        said = render(report_of(PASSED, worker=worker))
        assert "rule-3" in said
        assert "rule-4" not in said
        assert "and 2 more rules" in said


@pytest.mark.parametrize("render", [text.render, markdown.render, brief.render])
@pytest.mark.parametrize(
    ("state", "label"),
    [("healthy", "Healthy"), ("not-applicable", "Not applicable"), ("cannot-tell", "Inconclusive")],
)
def test_three_empty_states_say_why_nothing_was_found(
    render: Callable[[Report], str], state: str, label: str
) -> None:
    standing = msgspec.convert({"state": state, "message": "18 rules looked."}, OverallStatus)
    worker = msgspec.structs.replace(WORKER, standing=standing)
    said = render(report_of(PASSED, worker=worker)).replace("*", "")
    assert f"{label}: 18 rules looked." in said


def test_no_recording_is_called_healthy_of_a_run_that_is_not() -> None:
    quiet = msgspec.structs.replace(
        on_rank(0), standing=OverallStatus("healthy", "18 rules looked.")
    )
    of_run = msgspec.structs.replace(FOUND, trace="", rule="straggler-rank")
    for outcomes, said in (((of_run,), False), ((), True)):
        run = run_of(*outcomes, workers=(quiet, on_rank(1)))
        for render in (text.render, markdown.render, brief.render):
            assert ("Healthy" in render(Report((run,)))) == said


def test_a_bar_is_never_cut_off() -> None:
    part = BudgetLine("cpu", "Communication", 999_400_000, 1.0, 444_000_000, 999_000_000, ())
    worker = msgspec.structs.replace(WORKER, budget=(part,))
    said = text.render(report_of(worker=worker), width=80)
    [line] = re.findall(r"^Communication .*", said, re.MULTILINE)
    assert line.endswith(" " + "░" * 22)
    assert "…" not in line


def test_without_a_standing_that_nothing_was_found_is_said() -> None:
    worker = msgspec.structs.replace(WORKER, standing=None)
    for render in (text.render, markdown.render):
        assert "No rule found anything to fix." in render(report_of(PASSED, worker=worker))


def test_without_steps_savings_are_of_the_whole() -> None:
    worker = msgspec.structs.replace(WORKER, step=StepReport(0, 100, 0, {}))
    rendered = text.render(report_of(FOUND, worker=worker))
    assert "Saves 44.4–59.3 ms in total (25.4–33.9 %)" in rendered
    assert re.search(r"^Total +178 ms +100.0 %", rendered, re.MULTILINE)


def test_a_finding_without_a_claim_promises_nothing() -> None:
    found = msgspec.structs.replace(FOUND, claim=None)
    worker = msgspec.structs.replace(WORKER, budget=())
    for render in (text.render, markdown.render, brief.render, github.render):
        assert "up to" not in render(report_of(found, worker=worker))


def test_whose_time_others_claim_already_is_told_in_brief() -> None:
    for render in (text.render, markdown.render):
        said = render(report_of(COVERED))
        assert "Waiting for data takes 59.3 ms of each step." in said
        assert "counted under dataloader-no-workers" in one_line(said)
        assert "Fix" not in said


def test_several_recordings_are_told_of_once_with_where() -> None:
    for render in (text.render, markdown.render):
        said = one_line(render(RANKS))
        assert said.count("The DataLoader runs in the training process") == 1
        assert "In ranks 0-5 of 8, in step 5 of 6." in said
        assert "per step (5.5–30.0 %) in the worst trace" in said
        assert "(2 of 8 traces)" in said
        assert said.count("profile(record_shapes=True)") == 1


def test_the_verdict_of_the_run_comes_first_then_that_of_its_slowest_recording() -> None:
    slowest = msgspec.structs.replace(on_rank(1), verdict="Step 151 ms (rank 1).")
    run = run_of(workers=(on_rank(0), slowest))
    for of_run in ("2 recordings.", f"2 recordings: {slowest.verdict}"):
        report = Report((msgspec.structs.replace(run, verdict=of_run),))
        for render in (text.render, markdown.render, html.render):
            said = render(report).replace("\\", "")
            assert said.index("2 recordings") < said.index("Step 151 ms")
            assert said.count("Step 151 ms (rank 1).") == 1


def test_what_a_rule_found_elsewhere_in_the_recording_is_told_with_it() -> None:
    others = [
        msgspec.structs.replace(FOUND, trace="id0", fingerprint=f"o{n}", message=f"Place {n}.")
        for n in range(6)
    ]
    run = run_of(*others, workers=(on_rank(0), on_rank(1)))
    for render in (text.render, markdown.render):
        said = one_line(render(Report((run,))))
        assert "Also: Place 3." in said
        assert "Also: Place 4." not in said
        assert "and 2 more of the same" in said


def test_a_run_of_which_no_recording_could_be_read_says_so() -> None:
    for render in (text.render, markdown.render, brief.render):
        assert "No trace was read." in render(Report((run_of(workers=()),)))


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("configuration", "suppressed by the configuration: a reason"),
        ("baseline", "suppressed by the baseline: a reason"),
        ("recording", "suppressed by the program itself: a reason"),
    ],
)
def test_what_is_put_aside_says_by_whom_and_why(by: str, words: str) -> None:
    outcome = msgspec.structs.replace(SUPPRESSED, suppressed_by=by, reason="a reason")
    for render in (text.render, markdown.render, brief.render):
        assert words in one_line(render(report_of(outcome)))


def test_what_has_become_worse_than_the_baseline_is_marked() -> None:
    outcome = msgspec.structs.replace(FOUND, baseline="worse")
    for render in (text.render, markdown.render, brief.render):
        assert "worse than before" in one_line(render(report_of(outcome)))


def test_a_rule_that_rejects_here_and_passes_there_is_told_where_it_says_most() -> None:
    elsewhere = msgspec.structs.replace(PASSED, rule=REJECTED.rule, trace="id1")
    run = run_of(REJECTED, elsewhere, workers=(WORKER, on_rank(1)))
    said = text.render(Report((run,)))
    assert "Ruled out (1):" in said
    assert "Passed" not in said


def test_seventy_five_rules_that_say_nothing_take_few_lines() -> None:
    quiet = [
        msgspec.structs.replace(each, rule=f"{each.rule}-{number}")
        for number in range(25)
        for each in (PASSED, NOT_APPLICABLE, CANNOT_TELL)
    ]
    assert len(text.render(report_of(*quiet)).splitlines()) <= 42


def test_of_rules_that_do_not_apply_common_reasons_are_told_and_others_named() -> None:
    def inapplicable(rule: str, reason: str) -> Outcome:
        return msgspec.structs.replace(NOT_APPLICABLE, rule=rule, reason=reason)

    single = [inapplicable(f"rule-{number}", f"no {number} ran") for number in range(4)]
    both = [inapplicable(rule, "no device ran") for rule in ("one", "two")]
    said = one_line(text.render(report_of(*both, *single)))
    assert "Not applicable (6): one, two: no device ran." in said
    assert "rule-0, rule-1, rule-2, rule-3: for different reasons" in said
    assert "no 3 ran" in markdown.render(report_of(*both, *single))
    assert "rule-2: no 2 ran." in one_line(text.render(report_of(*both, *single[:3])))


def test_json_is_the_report() -> None:
    assert msgspec.json.decode(json.render(REPORT), type=Report) == REPORT


def test_what_puts_an_answer_in_doubt_stands_beside_it() -> None:
    lost = ("3 of 40 launches left no device event", "the file ends in the middle")
    found = msgspec.structs.replace(FOUND, doubts=lost)
    sure = msgspec.structs.replace(PASSED, rule="item-sync")
    passed = msgspec.structs.replace(PASSED, rule="gpu-idle-gap", doubts=lost[1:])
    report = report_of(found, sure, passed)
    said = one_line(text.render(report))
    assert f"Doubtful: {lost[0]}. The file ends in the middle." in said
    assert "Passed (1): item-sync" in said
    assert "Passed, with doubts (1): gpu-idle-gap The file ends in the middle." in said
    written = one_line(markdown.render(report))
    assert f"**Doubtful:** {lost[0]}. The file ends in the middle." in written
    assert "Passed, with doubts (1)</summary> `gpu-idle-gap`. The file ends in the" in written


def test_advice_says_what_was_done_about_damage() -> None:
    item = HealthItem("x", "warning", 2, "2 are bad", "Do it.", action="they were left out")
    worker = msgspec.structs.replace(WORKER, health=(item, OUT_OF_ORDER))
    report = report_of(worker=worker)
    for render in (text.render, markdown.render):
        assert "The trace: 2 are bad; they were left out. Do it." in one_line(render(report))
        assert "stand behind" not in render(report), "what changes nothing is told by `health`"
