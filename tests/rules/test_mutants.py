"""Thresholds moved by a third make some case fail; `make mutants` breaks everything else too.

`test_rules.py` runs the cases of the rules as they are.
"""

import pytest

from rules import mutants
from rules import test_rules as cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("stem", sorted(cases.RULES))
def test_a_rules_cases_notice_that_a_threshold_is_moved_by_a_third(stem: str) -> None:
    unnoticed = [each.words for each in mutants.other_options(stem) if mutants.survives(each)]
    assert unnoticed == []


def test_every_change_that_is_listed_as_equivalent_can_still_be_made() -> None:
    stems = mutants.stems()
    made = [mutant for stem in stems for mutant in mutants.mutants(stem)]
    assert mutants.gone(made, stems) == []


def test_a_rule_of_which_a_condition_is_changed_fails_a_case_and_then_is_itself_again() -> None:
    changes = [each for each in mutants.mutants("item_sync") if " is always " in each.words]
    assert not mutants.survives(changes[0])
    assert mutants.passes(cases.RULES["item_sync"])
