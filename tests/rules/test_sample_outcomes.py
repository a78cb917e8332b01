"""The outcomes of every rule on the sample logs are committed, so that each change is reviewed."""

from scripts import sample_outcomes


def test_the_rules_cases_state_their_outcomes_on_the_sample_logs() -> None:
    for rule, outcomes in sample_outcomes.outcomes_by_rule().items():
        text = sample_outcomes.cases_path(rule).read_text(encoding="utf-8")
        assert sample_outcomes.with_block(text, sample_outcomes.block(outcomes)) == text, (
            f"{rule} reports something else than its cases state: "
            "run `make sample-outcomes`, and read the diff"
        )
