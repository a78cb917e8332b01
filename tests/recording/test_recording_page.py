"""The page on recording says what is recorded: every subject, every variable of the environment."""

import re
from pathlib import Path

from stepscope.recording import schedule_for
from stepscope.recording.settings import COLLECTORS
from stepscope.recording.subjects.environment import RECORDED

PAGE = Path(__file__).parents[2] / "docs" / "recording.md"


def test_every_subject_is_told_and_no_other() -> None:
    table = PAGE.read_text().partition("## What is recorded")[2].partition("\n\n|")[2]
    rows = re.findall(r"^\|? ?((?:`\w+`(?:, )?)+) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(COLLECTORS)


def test_every_variable_of_the_environment_is_told_and_no_other() -> None:
    told = PAGE.read_text().partition("where they are set:\n\n")[2].partition(".\n\nTo omit")[0]
    assert tuple(re.findall(r"`(\w+)`", told)) == RECORDED


def test_the_steps_it_promises_are_recorded() -> None:
    promised = {
        schedule_for(10_000): "52 to 59, 2041 to 2048, …",
        schedule_for(steps_an_epoch=500, epochs=3): "27 to 34, 527 to 534, 1027 to 1034",
        schedule_for(): "52 to 59",
    }
    for schedule, steps in promised.items():
        assert str(schedule).startswith(f"records steps {steps.removesuffix(', …')}")
        assert steps in PAGE.read_text()
