"""The zoo: scripts with faults, their causes, and what the accuracy page says of them."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from score import zoo, zoo_tables
from score.ranges import Span
from score.zoo import StoredScript, ZooFinding, ZooScript, causes, stored_scripts
from stepscope.rules import all_rules
from zoo_runs import (
    FOLDER,
    GPU_FOLDER,
    LAST_LINE,
    ScriptResult,
    Turn,
    read_script,
    script_names,
)

NAMES = (*script_names(), *script_names(GPU_FOLDER))
RULES = {rule.id for rule in all_rules()}


def turns(*seconds: float) -> tuple[Turn, ...]:
    """Turns of 100 steps of 8 samples."""
    return tuple(Turn(steps=100, seconds=each, samples=800) for each in seconds)


def script(findings: tuple[ZooFinding, ...] = (), alarms: tuple[str, ...] = ()) -> ZooScript:
    """A step of 10 ms, of which the fault `checkpoint` is 1 ms, `validate` 4 ms."""
    result = ScriptResult(
        script="cifar_resnet_script",
        faults={"checkpoint": "a checkpoint", "validate": "a validation"},
        lines={"checkpoint": (120,), "validate": (94, 111)},
        turns={
            "": turns(1, 1, 1),
            "checkpoint": turns(0.9, 0.9, 0.9),
            "validate": turns(0.6, 0.61, 0.59),
            "*": turns(0.5, 0.5, 0.5),
        },
        torch="2.13.0",
        processor="a processor",
        core_count=2,
    )
    stored = StoredScript(
        result=result, findings=findings, alarms=alarms, slowdown=1.2, verdict="A verdict."
    )
    return ZooScript(stored=stored)


def finding(rule: str, *lines: int, saving: tuple[float, float] | None = None) -> ZooFinding:
    is_symptom = rule == "step-time-jitter"
    return ZooFinding(
        rule=rule, severity="warning", is_symptom=is_symptom, lines=lines, saving=saving
    )


def test_the_most_expensive_fault_comes_first_and_savings_are_those_of_its_fix() -> None:
    result = script().stored.result
    assert script().faults == ("validate", "checkpoint")
    assert result.before_ms == pytest.approx(10)
    assert result.saving_ms("validate") == pytest.approx(4)
    assert result.error_ms("checkpoint") == pytest.approx(0, abs=1e-9)


def test_times_are_per_sample_where_a_fix_changes_the_batch() -> None:
    result = script().stored.result
    more = tuple(Turn(steps=50, seconds=0.6, samples=800) for _ in range(3))
    larger = ScriptResult(
        **{
            **{name: getattr(result, name) for name in result.__struct_fields__},
            "turns": {**result.turns, "validate": more},
        }
    )
    assert larger.saving_ms("validate") == pytest.approx(4)


def test_symptoms_do_not_count_in_a_position() -> None:
    findings = (finding("step-time-jitter"), finding("validation-in-step"), finding("item-sync"))
    judged = script(findings)
    assert judged.position("validate") == 1
    assert judged.position("checkpoint") is None
    assert judged.is_first
    assert judged.is_in_first_three


def test_a_fault_that_costs_as_much_as_the_turns_can_tell_is_main_as_well() -> None:
    result = script().stored.result

    def with_checkpoint(*seconds: float) -> ZooScript:
        fields = {name: getattr(result, name) for name in result.__struct_fields__}
        fields["turns"] = {**result.turns, "checkpoint": turns(*seconds)}
        findings = (finding("checkpoint-in-step"),)
        stored = StoredScript(
            result=ScriptResult(**fields),
            findings=findings,
            alarms=(),
            slowdown=None,
            verdict="A verdict.",
        )
        return ZooScript(stored=stored)

    varying = with_checkpoint(0.55, 0.65, 0.75)
    assert varying.main_faults == ("validate", "checkpoint")
    assert varying.is_first
    steady = with_checkpoint(0.65, 0.65, 0.65)
    assert steady.main_faults == ("validate",), "the turns are clear"
    assert not steady.is_first
    cheaper = with_checkpoint(0.5, 0.7, 0.9)
    assert cheaper.main_faults == ("validate",), "three quarters of it"


def test_a_hot_path_names_the_fault_at_its_line() -> None:
    assert script((finding("hot-path", 111),)).is_first
    assert not script((finding("hot-path", 110),)).is_first
    assert not script((finding("item-sync", 111),)).is_first
    others = tuple(finding(rule) for rule in ("item-sync", "copy-heavy", "tiny-kernels"))
    assert not script((*others, finding("hot-path", 111))).is_in_first_three
    assert script((*others[:2], finding("hot-path", 111))).is_in_first_three


def test_an_estimate_is_a_fraction_of_the_script_s_step() -> None:
    judged = script((finding("validation-in-step", saving=(0.3, 0.5)),))
    assert judged.estimate("validate") == Span(low=3, high=5)
    assert judged.holds("validate") == "yes"
    assert judged.estimate("checkpoint") is None
    assert judged.holds("checkpoint") == "nothing predicted"


def test_findings_that_are_true_of_a_healthy_script_are_no_false_alarms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = script(alarms=("item-sync", "copy-heavy"))
    true = {"cifar_resnet_script": {"also_true": ["item-sync"]}}
    monkeypatch.setattr(zoo, "causes", lambda: true)
    assert judged.false_alarms == ("copy-heavy",)


@pytest.mark.parametrize("name", NAMES)
def test_each_fault_of_a_script_has_lines_and_a_list_of_rules(name: str) -> None:
    faults, lines = read_script(name)
    assert 2 <= len(faults) <= 4
    assert set(lines) == set(faults)
    listed = causes()[name]
    assert set(listed) - {zoo.ALSO} == set(faults)
    assert {rule for rules in listed.values() for rule in rules} <= RULES


def test_the_scripts_on_which_rules_were_written_exist() -> None:
    seen = set(zoo.SEEN.read_text().split())
    assert seen < set(NAMES), "others must judge"
    assert set(causes()) == set(NAMES)
    assert len(set(NAMES)) == len(NAMES), "results are stored by name"


def test_a_line_that_names_no_fault_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zoo_runs.FOLDER", tmp_path)
    path = tmp_path / "job.py"
    path.write_text("FAULTS = {'slow': 'a sleep'}\nsleep()  # fault: slwo\n")
    with pytest.raises(ValueError, match=r"job\.py\(2\): FAULTS has no slwo"):
        read_script("job")
    path.write_text("FAULTS = {'slow': 'a sleep'}\n")
    with pytest.raises(ValueError, match=r"job\.py: no line is marked for slow"):
        read_script("job")


def test_a_script_that_fails_is_reported_with_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zoo_runs.FOLDER", tmp_path)
    (tmp_path / "job.py").write_text(
        "import sys\nprint('at work', sys.argv[1])\nraise OSError(7)\n"
    )
    code = (
        "import zoo_runs, pathlib, sys\n"
        "zoo_runs.FOLDER = pathlib.Path(sys.argv[1])\n"
        "zoo_runs.run_once('job', ['slow'], pathlib.Path(sys.argv[1], 'log'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(FOLDER.parent)},
    )
    assert "RuntimeError: job slow: at work slow | OSError: 7" in done.stderr


@pytest.mark.slow
def test_a_script_of_the_zoo_runs_and_prints_its_times(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "char_rnn.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert LAST_LINE.search(done.stdout)


def test_the_section_states_each_total() -> None:
    found = (finding("validation-in-step", saving=(0.3, 0.5)),)
    text = "\n".join(zoo_tables.zoo([script(found)]))
    assert "| scripts on which rules were written (1) | 1 of 1 | 1 of 1 | 0 of 1 | 1 of 2 |" in text
    assert (
        "| a validation | `cifar_resnet_script` | 4.00 ms ± 248 µs | 1 | 3.00 ms to 5.00 ms | yes |"
        in text
    )
    assert list(zoo_tables.zoo([])) == []


def test_the_stored_scripts_are_those_of_the_folder() -> None:
    assert {stored.name for stored in stored_scripts()} <= set(NAMES)


def test_scripts_on_a_gpu_are_counted_apart_and_one_turn_has_no_interval() -> None:
    stored = script((finding("validation-in-step", saving=(0.3, 0.5)),)).stored
    fields = {name: getattr(stored.result, name) for name in stored.result.__struct_fields__}
    once = {name: several[:1] for name, several in stored.result.turns.items()}
    result = ScriptResult(**{**fields, "turns": once, "device": "NVIDIA H200"})
    on_gpu = ZooScript(stored=msgspec.structs.replace(stored, result=result))
    text = "\n".join(zoo_tables.zoo([script(), on_gpu]))
    assert "| scripts on a GPU (1) | 1 of 1 | 1 of 1 | 0 of 1 | 1 of 2 |" in text
    assert (
        "| a validation | `cifar_resnet_script` | 4.00 ms | 1 | 3.00 ms to 5.00 ms | yes |" in text
    )
    assert on_gpu.holds("checkpoint") == "nothing predicted"
    assert list(zoo_tables.zoo_line([on_gpu])) == []
