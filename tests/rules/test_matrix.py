"""What every rule says of every recording at hand is committed, so that each change is seen."""

import pytest

from scripts import rules_matrix


@pytest.mark.slow
def test_the_matrix_is_what_the_rules_say() -> None:
    committed = rules_matrix.sections(rules_matrix.MATRIX.read_text(encoding="utf-8"))
    told = rules_matrix.matrix()
    assert {name for name in committed if name.startswith("sample_logs/")} <= told.keys()
    for name, lines in told.items():
        assert committed.get(name) == lines, f"{name}: run `make rules-matrix`, and read its diff"
