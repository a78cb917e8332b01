"""Scripts of the zoo: what was wrong, what it cost, and what the advice said.

`python -m score.zoo` reads results and traces of `python -m zoo_runs` in build/, and stores in
`zoo.json` what the accuracy page needs, one script per line. `zoo_causes.toml` lists the rules that
name each fault.
"""

import math
import sys
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from loading import ROOT
from pairs.result import FILE_NAME
from score.answers import serious
from score.pairs import advice
from score.ranges import Holds, Span, judgement
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Outcome
from stepscope.base.report import RunReport
from stepscope.library import load
from stepscope.model.trace import Run, Trace
from stepscope.replay.unrecorded import unrecorded_world
from zoo_runs import FAULTY, FOLDER, HEALTHY, ScriptResult, script_path

FILE = Path(__file__).with_name("zoo.json")
CAUSES = Path(__file__).with_name("zoo_causes.toml")
RESULTS = (ROOT / "build" / "zoo", ROOT / "build" / "zoo_gpu")
SEEN = FOLDER / "seen.txt"
ALSO = "also_true"
BY_LINE = ("hot-path", "dataloader-no-workers", "dataloader-bound", "operators-in-python-loop")
"""Rules that name whatever is at the lines that they show."""
FIRST = 3
AS_MUCH = 0.8


class ZooFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finding on a script with all its faults."""

    rule: str
    severity: str
    is_symptom: bool = False
    lines: tuple[int, ...] = ()
    """Lines of the script that it names."""
    saving: tuple[float, float] | None = None
    """Estimated saving, as fractions of the decisive step; None: no estimate."""


class StoredScript(msgspec.Struct, frozen=True, kw_only=True):
    """A script's turns, and the advice on its two traces."""

    result: ScriptResult
    findings: tuple[ZooFinding, ...]
    """On the script with all faults, in the order of the report."""
    alarms: tuple[str, ...]
    """Rules at warning or above on the healthy script."""
    slowdown: float | None
    """Recorded step over the unrecorded one, with all faults; None: not measured."""
    verdict: str


@dataclass(frozen=True, kw_only=True)
class ZooScript:
    """A stored script, compared with the truth."""

    stored: StoredScript

    @property
    def name(self) -> str:
        """Name of the script."""
        return self.stored.result.script

    @property
    def is_on_gpu(self) -> bool:
        """Whether it ran on a GPU."""
        return bool(self.stored.result.device)

    @property
    def is_seen(self) -> bool:
        """Whether rules were written on it."""
        return self.name in SEEN.read_text().split()

    @property
    def faults(self) -> tuple[str, ...]:
        """Faults by what they cost, the most expensive first."""
        result = self.stored.result
        return tuple(sorted(result.faults, key=result.saving_ms, reverse=True))

    def rules(self, fault: str) -> frozenset[str]:
        """Return the rules that name a fault."""
        return frozenset(causes().get(self.name, {}).get(fault, ()))

    def names_fault(self, finding: ZooFinding, fault: str) -> bool:
        """Return whether a finding names a fault: by its rule, or by its line."""
        lines = set(self.stored.result.lines[fault])
        is_at_line = finding.rule in BY_LINE and bool(lines & set(finding.lines))
        return finding.rule in self.rules(fault) or is_at_line

    def position(self, fault: str) -> int | None:
        """Return the position among the findings that name a cause, from 1; None: not named."""
        causes_named = [finding for finding in self.stored.findings if not finding.is_symptom]
        positions = (
            position
            for position, finding in enumerate(causes_named, 1)
            if self.names_fault(finding, fault)
        )
        return next(positions, None)

    @property
    def main_faults(self) -> tuple[str, ...]:
        """The most expensive fault, and those that cost as much, as far as the turns show.

        Such a fault costs `AS_MUCH` of it or more, and less by no more than the turns' variation.
        """
        result, first = self.stored.result, self.faults[0]
        most_ms = result.saving_ms(first)
        return first, *(
            fault
            for fault in self.faults[1:]
            if result.saving_ms(fault) >= AS_MUCH * most_ms
            and most_ms - result.saving_ms(fault)
            <= max(result.error_ms(first), result.error_ms(fault))
        )

    @property
    def main_position(self) -> int:
        """Position of the first finding that names a main fault, from 1; after all: none does."""
        positions = (self.position(fault) for fault in self.main_faults)
        return min((at for at in positions if at), default=len(self.stored.findings) + FIRST + 1)

    @property
    def is_first(self) -> bool:
        """Whether a most expensive fault is named first."""
        return self.main_position == 1

    @property
    def is_in_first_three(self) -> bool:
        """Whether a most expensive fault is named by one of the first three findings."""
        return self.main_position <= FIRST

    @property
    def false_alarms(self) -> tuple[str, ...]:
        """Rules at warning or above on the healthy script whose findings are not true."""
        true = causes().get(self.name, {}).get(ALSO, ())
        return tuple(rule for rule in self.stored.alarms if rule not in true)

    def estimate(self, fault: str) -> Span | None:
        """Return the estimated saving of a fault, ms per step; None without one.

        Of several findings that name it, the greatest; a finding that names several faults
        estimates the most expensive.
        """
        before = self.faults[: self.faults.index(fault)]
        shares = [
            finding.saving
            for finding in self.stored.findings
            if finding.saving
            and self.names_fault(finding, fault)
            and not any(self.names_fault(finding, other) for other in before)
        ]
        if not shares:
            return None
        low, high = max(shares, key=lambda share: share[1])
        before_ms = self.stored.result.before_ms
        return Span(low=before_ms * low, high=before_ms * high)

    def holds(self, fault: str) -> Holds:
        """Return whether the estimate contains the realised saving."""
        result = self.stored.result
        saving, error = result.saving_ms(fault), result.error_ms(fault)
        margin = error if math.isfinite(error) else 0.0
        likely = Span(low=saving - margin, high=saving + margin)
        return judgement(self.estimate(fault) or Span(low=0, high=0), saving, likely)


@cache
def causes() -> dict[str, dict[str, list[str]]]:
    """Return the rules that name each fault, by script."""
    return tomllib.loads(CAUSES.read_text())


def stored_scripts() -> tuple[ZooScript, ...]:
    """Return the stored scripts, by name; none without the file."""
    if not FILE.exists():
        return ()
    scripts = msgspec.json.decode(FILE.read_bytes(), type=list[StoredScript])
    return tuple(ZooScript(stored=stored) for stored in scripts)


def main(tops: Sequence[Path]) -> int:
    """Write the file; a script without a result keeps its entry."""
    scripts = {script.name: script.stored for script in stored_scripts()}
    scripts = {name: stored for name, stored in scripts.items() if script_path(name).exists()}
    folders = [path.parent for top in tops for path in sorted(top.rglob(FILE_NAME))]
    with ProcessPoolExecutor() as pool:
        for stored in pool.map(read_script, folders):
            scripts[stored.result.script] = stored
    lines = [msgspec.json.encode(scripts[name]) for name in sorted(scripts)]
    FILE.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")
    for name in sorted(scripts):
        report_line(ZooScript(stored=scripts[name]))
    return 0


def read_script(folder: Path) -> StoredScript:
    """Return a script's result with the advice on its traces."""
    result = msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=ScriptResult)
    faulty = load(folder / FAULTY)
    report = advice(faulty)
    return StoredScript(
        result=result,
        findings=tuple(findings(result.script, faulty, report)),
        alarms=tuple(dict.fromkeys(o.rule for o in serious(advice(load(folder / HEALTHY))))),
        slowdown=slowdown(faulty.workers[0]),
        verdict=report.verdict,
    )


def slowdown(trace: Trace) -> float | None:
    """Return the recorded step over the measured unrecorded one."""
    steps = measured_steps(trace)
    return window(trace).reference_ns / step_count(trace) / steps.step_ns if steps else None


def step_count(trace: Trace) -> int:
    """Return the number of steps that savings are divided by."""
    return max(1, window(trace).step_count)


def findings(script: str, run: Run, report: RunReport) -> Iterable[ZooFinding]:
    """Yield the findings as a report lists them: of several traces each rule's once."""
    steps_ns = decisive_steps_ns(run)
    listed = [merged.outcome for merged in report.merged]
    if len(run.workers) == 1:
        listed = [outcome for outcome in report.outcomes if outcome.status == "found"]
    for outcome in listed:
        yield ZooFinding(
            rule=outcome.rule,
            severity=outcome.severity or "",
            is_symptom=outcome.is_symptom,
            lines=tuple(
                line.line for line in outcome.locations if line.path.endswith(f"{script}.py")
            ),
            saving=saving(outcome, steps_ns),
        )


def decisive_steps_ns(run: Run) -> dict[str, float]:
    """Return the recorded and the unrecorded step of the first trace."""
    trace = run.workers[0]
    recorded_ns = window(trace).reference_ns / step_count(trace)
    try:
        unrecorded_ns: float = unrecorded_world(trace).predicted_ns
    except MissingDataError:  # no replay: all savings are of the recorded step
        unrecorded_ns = recorded_ns
    return {"recorded": recorded_ns, "unrecorded": unrecorded_ns}


def saving(outcome: Outcome, steps_ns: dict[str, float]) -> tuple[float, float] | None:
    """Return a finding's estimated saving as fractions of the step."""
    claim = outcome.claim
    if claim is None:
        return None
    step_ns = steps_ns[claim.decisive_step]
    return claim.decisive.low_ns / step_ns, claim.decisive.high_ns / step_ns


def report_line(script: ZooScript) -> None:
    """Print one script's judgement."""
    stored = script.stored
    lines = [
        f"{'+' if script.is_first else '-'} {script.name}: {stored.result.before_ms:.1f} ms, "
        f"recorded ×{stored.slowdown or 0:.2f}; alarms {', '.join(script.false_alarms) or 'none'}"
    ]
    for fault in script.faults:
        result, estimate = stored.result, script.estimate(fault)
        promised = f"{estimate.low:.2f} to {estimate.high:.2f}" if estimate else "none"
        lines.append(
            f"    {script.position(fault) or '-'} {fault}: {result.saving_ms(fault):.2f} ± "
            f"{result.error_ms(fault):.2f} ms, promised {promised} ({script.holds(fault)})"
        )
    first = [f"{finding.rule} ({finding.severity})" for finding in stored.findings[:4]]
    lines.append(f"    {', '.join(first)}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]] or RESULTS))
