"""A rule's page: what `stepscope explain` prints and `docs/rules/<id>.md` shows."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from stepscope.base.findings import Effort, LifeCycle, Risk
from stepscope.base.formatting import count
from stepscope.rules import Rule

EFFORTS = MappingProxyType[Effort, str](
    {
        "flag": "an argument or a line",
        "hour": "an hour of someone who knows the code",
        "day": "a day or more",
    }
)
RISKS = MappingProxyType[Risk, str](
    {
        "none": "none: the same results in less time",
        "numerics": "results change a little: check that the model still learns",
        "memory": "needs more memory",
        "behaviour": "may change the behaviour of the program: see the caveats below",
    }
)
LIFE_CYCLES = MappingProxyType[LifeCycle, str](
    {
        "preview": "preview: runs only with `--preview`, or selected by its name",
        "stable": "stable",
        "deprecated": "deprecated: it will be removed",
    }
)


def render(rule: Rule[Any]) -> str:
    """Return the page in Markdown."""
    return "\n".join(_lines(rule)).rstrip() + "\n"


def file_name(rule: Rule[Any]) -> str:
    """Return the name of the rule's page in `docs/rules/`."""
    return f"{rule.id.replace('/', '--')}.md"


def _lines(rule: Rule[Any]) -> Iterator[str]:
    yield from (f"# {rule.id}", "", f"**{rule.title}.**", "")
    yield from _facts(rule)
    yield from ("## What it checks", "", rule.detects, "")
    yield from ("## Why it matters", "", rule.why, "")
    yield from _fix(rule)
    yield from ("## Estimated saving", "", rule.saving, "")
    if not rule.package:
        record = accuracy(rule_record(rule.id))
        yield from ("## Accuracy", "", f"{record} [All figures](../accuracy.md).", "")
    if rule.silent:
        yield from ("## When it does not report", "", *(f"- {case}" for case in rule.silent), "")
    yield from _options(rule)
    yield from ("## Origin", "", f"{rule.origin}.".replace("..", "."), "")
    yield from (f"- <{link}>" for link in rule.links)


def _facts(rule: Rule[Any]) -> Iterator[str]:
    facts = {
        "Category": rule.category,
        "Status": f"{LIFE_CYCLES[rule.life_cycle]}, since {rule.since}",
        "Scope": "all traces of a run together" if rule.check_run else "each trace",
        "Effort of the fix": EFFORTS[rule.effort],
        "Risk of the fix": RISKS[rule.risk],
        "Also called": ", ".join(f"`{alias}`" for alias in rule.aliases),
        "Package": rule.package,
    }
    if rule.is_symptom:
        facts["Kind"] = "a symptom: other rules find its causes"
    yield from ("| | |", "|---|---|")
    yield from (f"| {name} | {text} |" for name, text in facts.items() if text)
    yield ""


def _fix(rule: Rule[Any]) -> Iterator[str]:
    fix = rule.fix
    yield from ("## What to change", "", fix.summary, "")
    if fix.code:
        yield from (f"```{fix.language}", fix.code.strip("\n"), "```", "")
    if fix.verify:
        yield from (f"**Check that it worked:** {fix.verify}", "")
    for caveat in fix.caveats:
        yield f"- {caveat}"
    if fix.caveats:
        yield ""


def _options(rule: Rule[Any]) -> Iterator[str]:
    options = dataclasses.fields(rule.options) if dataclasses.is_dataclass(rule.options) else ()
    yield from ("## Options", "")
    if options:
        yield from ("| option | default | meaning | origin of the default |",)
        yield "|---|---:|---|---|"
        for field in options:
            texts = (_cell(field.metadata.get(key, "")) for key in ("meaning", "origin"))
            yield f"| `{field.name}` | {_value(field.default)} | {' | '.join(texts)} |"
        yield ""
    first = f"{options[0].name} = {_value(options[0].default)}\n" if options else ""
    yield from (
        "In `pyproject.toml` (in `stepscope.toml` without `tool.stepscope.`):",
        "",
        "```toml",
        f'[tool.stepscope.rules.{_key(rule.id)}]\n{first}severity = "info"  # of all its findings',
        "",
        "[[tool.stepscope.suppress]]",
        f'rule = "{rule.id}"',
        'reason = "why you accept it"',
        "```",
        "",
    )


def _key(name: str) -> str:
    return f'"{name}"' if "/" in name else name


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value >= 10_000:
        return f"{value:_}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


FILE = Path(__file__).with_name("rule_records.json")
"""Accuracy of the rules on traces with known faults; `make score` writes it."""


class RunCounts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Numbers of runs of one kind (recorded or synthetic) by the rule's result."""

    hit_count: int = msgspec.field(default=0, name="found_count")
    """The fault was there, and the rule reported it at warning or above."""
    missed_count: int = 0
    """The fault was there, and the rule did not report it."""
    also_true_count: int = 0
    """The rule's finding is true alongside another fault, or of a healthy run."""
    false_count: int = 0
    """The rule's finding is false."""


class RuleRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Accuracy of one rule."""

    recorded: RunCounts = RunCounts()
    synthetic: RunCounts = RunCounts()


NONE = RuleRecord()


def encode_records(records: Mapping[str, RuleRecord]) -> bytes:
    """Return the content of `FILE` for records by rule."""
    return msgspec.json.format(msgspec.json.encode(dict(records)), indent=1) + b"\n"


@cache
def rule_record(rule: str) -> RuleRecord:
    """Return a rule's accuracy; `NONE` for a rule that was never tested."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, RuleRecord]).get(rule, NONE)


def accuracy(record: RuleRecord) -> str:
    """Return a rule's accuracy in sentences."""
    kinds = {
        "Recorded": _counts(record.recorded),
        "Synthetic (written from a schedule, not recorded)": _counts(record.synthetic),
    }
    return " ".join(f"{kind}: {counts}." for kind, counts in kinds.items() if counts) or (
        "No trace with this fault has tested the rule; on the other traces it has never been a"
        " false alarm."
    )


def _counts(runs: RunCounts) -> str:
    faults = runs.hit_count + runs.missed_count
    parts = [
        f"found in {runs.hit_count} of {count(faults, 'run')} with this fault" if faults else "",
        f"also true in {count(runs.also_true_count, 'run')}" if runs.also_true_count else "",
        f"**a false alarm in {count(runs.false_count, 'run')}**" if runs.false_count else "",
    ]
    parts = [part for part in parts if part]
    if parts and not runs.false_count:
        parts.append("no false alarm")
    return ", ".join(parts)
