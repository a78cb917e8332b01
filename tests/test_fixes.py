"""Fixes of findings as changes of the replay: alone, together, and on top of other changes."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from msgspec import structs

import stepscope
from loading import SAMPLE_LOGS, trace_at
from stepscope.advice import advise_trace
from stepscope.advice.fixes import fix_changes, fix_savings, fixes
from stepscope.advice.settings import DEFAULT, AdviceSettings, Changes, Suppression
from stepscope.analyses.core.window import window
from stepscope.api.endpoints.what_if import WhatIfQuery, what_if
from stepscope.api.endpoints.what_if import fixes as fixes_message
from stepscope.base.errors import UsageError
from stepscope.cli import cli
from stepscope.model.trace import Trace
from stepscope.render import prediction as rendered
from stepscope.replay.changes import ScaleDevice
from stepscope.replay.simulation import simulate
from stepscope.replay.what_if import WhatIf, predict

SAMPLES = ("synthetic_item_sync/fault", "synthetic_dataloader/fault", "masking/numpy")


def sample(name: str) -> Trace:
    [path] = (SAMPLE_LOGS / name).glob("*.json.gz")
    return trace_at(Path(path))


def test_a_fix_alone_saves_what_the_advice_says() -> None:
    for name in (*SAMPLES, "metrics_cuda/item_each_step"):
        trace = sample(name)
        claims = {item.rule: item.claim for item in advise_trace(trace).outcomes if item.claim}
        steps = window(trace).step_count
        savings = fix_savings(trace, (), ())
        assert savings
        for saving in savings:
            claim = claims[saving.rule.id]
            least, most = saving.low_ns / steps, saving.high_ns / steps
            assert (least, most) == pytest.approx((claim.low_ns, claim.high_ns), rel=1e-3, abs=2)


def test_one_more_fix_never_makes_a_step_longer() -> None:
    for name in SAMPLES:
        trace, applied = sample(name), []
        before = simulate(trace, ()).simulated_ns
        for fix in fixes(trace):
            applied.append(fix.rule.id)
            changes = fix_changes(trace, applied)
            least, most = (simulate(trace, of).simulated_ns for of in (changes.least, changes.most))
            assert most <= least
            assert most <= before
            before = most


def test_the_saving_of_an_applied_fix_is_what_is_lost_without_it() -> None:
    trace = sample("synthetic_item_sync/fault")
    alone = {saving.rule.id: saving for saving in fix_savings(trace, (), ())}
    applied = {saving.rule.id: saving for saving in fix_savings(trace, ("item-sync",), ())}
    assert [rule for rule, saving in applied.items() if saving.is_applied] == ["item-sync"]
    assert applied["item-sync"].high_ns == alone["item-sync"].high_ns


def test_fixes_apply_below_other_changes_and_a_repeated_set_is_the_same() -> None:
    trace = sample("synthetic_item_sync/fault")
    half = ScaleDevice(rows=np.arange(len(trace.device_events)), factor=0.5)
    first = simulate(trace, [*fix_changes(trace, ["item-sync"]).most, half]).simulated_ns
    fix_changes(trace, [fix.rule.id for fix in fixes(trace)])
    again = simulate(trace, [*fix_changes(trace, ["item-sync"]).most, half]).simulated_ns
    assert again == first < simulate(trace, [half]).simulated_ns


def test_a_rule_without_a_finding_is_refused() -> None:
    with pytest.raises(UsageError, match="item-sync has no finding in this trace that saves time"):
        fix_changes(sample("masking/numpy"), ["item-sync"])


def test_the_page_gets_the_range_of_the_simulated_step() -> None:
    trace = sample("synthetic_item_sync/fault")
    step = what_if(trace, DEFAULT, WhatIfQuery(fix=("item-sync",)))
    assert step.simulated_ns < step.slowest_ns < step.recorded_ns
    assert step.headline.startswith("The step takes 8.66–9.32 ms instead of 10.9 ms: it saves ")
    message = fixes_message(trace, DEFAULT, WhatIfQuery(fix=("item-sync",)))
    assert [fix.rule for fix in message.fixes if fix.is_applied] == ["item-sync"]
    [fix] = [fix for fix in message.fixes if fix.is_applied]
    assert fix.high_ns == pytest.approx(step.recorded_ns - step.simulated_ns, abs=2)


def test_a_range_that_may_save_or_cost_has_times_only() -> None:
    prediction = predict(sample("synthetic_item_sync/fault"), WhatIf(device=0.5))
    slow = structs.replace(prediction, slowest_ns=prediction.recorded_ns * 2)
    words = rendered.headline(slow)
    assert words == "The step takes 6.67–21.7 ms instead of 10.9 ms."


def test_the_terminal_fixes_findings_by_rule(tmp_path: Path) -> None:
    folder = str(SAMPLE_LOGS / "synthetic_item_sync" / "fault")
    output = tmp_path / "fixed.json"
    result = CliRunner().invoke(
        cli, ["whatif", folder, "--fix", "item-sync,optimizer-not-fused", "--trace", str(output)]
    )
    assert result.output.startswith("The step takes 8.22–9.32 ms instead of 10.9 ms")
    assert "Host, simulated" in output.read_text()
    refused = CliRunner().invoke(cli, ["whatif", folder, "--fix", "main-thread-pin-memory"])
    assert refused.exit_code == 2
    assert "main-thread-pin-memory has no finding in this trace that saves time" in refused.output


def test_in_python_fixes_apply_below_all_changes() -> None:
    trace = sample("synthetic_item_sync/fault")
    half = ScaleDevice(rows=np.arange(len(trace.device_events)), factor=0.5)
    step = stepscope.whatif(trace, half, fixes=("item-sync",)).prediction
    text = stepscope.whatif(trace, "kernels:*=0.5", fixes=("item-sync",)).prediction
    assert step.simulated_ns == text.simulated_ns
    assert step.simulated_ns < stepscope.whatif(trace, half).prediction.simulated_ns
    assert step.slowest_ns is not None
    assert step.slowest_ns >= step.simulated_ns


@pytest.mark.parametrize(
    "changes",
    [
        Changes(ignore=("item-sync",)),
        Changes(select=("info",)),
        Changes(options={"item-sync": {"least_idle_share": 0.9}}),
        Changes(suppressions=(Suppression(rule="item-sync", reason="It is logged."),)),
    ],
)
def test_fixes_are_those_of_the_findings_that_the_users_settings_show(changes: Changes) -> None:
    trace = sample("synthetic_item_sync/fault")
    settings = AdviceSettings(changes=changes)
    usual = [fix.rule.id for fix in fixes(trace)]
    shown = {o.rule for o in advise_trace(trace, settings).outcomes if o.status == "found"}
    assert usual == ["item-sync", "optimizer-not-fused"]
    assert [fix.rule.id for fix in fixes(trace, settings)] == [
        rule for rule in usual if rule in shown
    ]
    assert "item-sync" not in shown
    with pytest.raises(UsageError, match="item-sync has no finding"):
        fix_changes(trace, ["item-sync"], settings)


def test_the_terminal_fixes_the_findings_by_the_nearest_configuration(tmp_path: Path) -> None:
    (tmp_path / "stepscope.toml").write_text('ignore = ["item-sync"]')
    folder = str(SAMPLE_LOGS / "synthetic_item_sync" / "fault")
    arguments = ["whatif", folder, "--fix", "item-sync", "--config"]
    refused = CliRunner().invoke(cli, [*arguments, str(tmp_path / "stepscope.toml")])
    assert refused.exit_code == 2
    assert "item-sync has no finding" in refused.output
