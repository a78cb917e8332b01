"""A rule's page: what `stepscope explain` prints and `docs/rules/<id>.md` shows."""

import dataclasses
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from stepscope.base.findings import Effort, LifeCycle, Risk
from stepscope.render import rule_accuracy
from stepscope.rules import Rule

EFFORTS = MappingProxyType[Effort, str](
    {
        "flag": "an argument or a line",
        "hour": "an hour, of somebody who knows the code",
        "day": "a day or more",
    }
)
RISKS = MappingProxyType[Risk, str](
    {
        "none": "none: the same results in less time",
        "numerics": "results change a little: check that the model still learns",
        "memory": "needs more memory",
        "behaviour": "may change what the program does: read what it says below",
    }
)
LIFE_CYCLES = MappingProxyType[LifeCycle, str](
    {
        "preview": "on trial: asked with `--preview` or by its name only",
        "stable": "stable",
        "deprecated": "deprecated: it will be removed",
    }
)


def render(rule: Rule[Any]) -> str:
    """Return the page in Markdown."""
    return "\n".join(_lines(rule)).rstrip() + "\n"


def file_name(rule: Rule[Any]) -> str:
    """Return the name of its page in `docs/rules/`."""
    return f"{rule.id.replace('/', '--')}.md"


def _lines(rule: Rule[Any]) -> Iterator[str]:
    yield from (f"# {rule.id}", "", f"**{rule.title}.**", "")
    yield from _facts(rule)
    yield from ("## What it looks at", "", rule.detects, "")
    yield from ("## Why it matters", "", rule.why, "")
    yield from _fix(rule)
    yield from ("## What it saves", "", rule.saving, "")
    if not rule.package:
        said = rule_accuracy.sentences(rule_accuracy.record_of(rule.id))
        yield from ("## How often it was right", "", f"{said} [All figures](../accuracy.md).", "")
    if rule.silent:
        yield from ("## When it keeps silent", "", *(f"- {each}" for each in rule.silent), "")
    yield from _options(rule)
    yield from ("## Where it comes from", "", f"{rule.origin}.".replace("..", "."), "")
    yield from (f"- <{link}>" for link in rule.links)


def _facts(rule: Rule[Any]) -> Iterator[str]:
    facts = {
        "Category": rule.category,
        "Status": f"{LIFE_CYCLES[rule.life_cycle]}, since {rule.since}",
        "Looks at": "all recordings of a run together" if rule.check_run else "each recording",
        "Effort of the fix": EFFORTS[rule.effort],
        "Risk of the fix": RISKS[rule.risk],
        "Also called": ", ".join(f"`{alias}`" for alias in rule.aliases),
        "Package": rule.package,
    }
    if rule.is_symptom:
        facts["Kind"] = "a symptom: its causes are found by other rules"
    yield from ("| | |", "|---|---|")
    yield from (f"| {name} | {text} |" for name, text in facts.items() if text)
    yield ""


def _fix(rule: Rule[Any]) -> Iterator[str]:
    fix = rule.fix
    yield from ("## What to change", "", fix.summary, "")
    if fix.code:
        yield from (f"```{fix.language}", fix.code.strip("\n"), "```", "")
    if fix.verify:
        yield from (f"**How to see that it worked:** {fix.verify}", "")
    for caveat in fix.caveats:
        yield f"- {caveat}"
    if fix.caveats:
        yield ""


def _options(rule: Rule[Any]) -> Iterator[str]:
    options = dataclasses.fields(rule.options) if dataclasses.is_dataclass(rule.options) else ()
    yield from ("## Options", "")
    if options:
        yield from ("| option | default | what it means | where the default comes from |",)
        yield "|---|---:|---|---|"
        for each in options:
            meaning, origin = each.metadata.get("meaning", ""), each.metadata.get("origin", "")
            yield f"| `{each.name}` | {_value(each.default)} | {_cell(meaning)} | {_cell(origin)} |"
        yield ""
    first = f"{options[0].name} = {_value(options[0].default)}\n" if options else ""
    yield from (
        "In `pyproject.toml` (in `stepscope.toml` without `tool.stepscope.`):",
        "",
        "```toml",
        f'[tool.stepscope.rules.{_key(rule.id)}]\n{first}severity = "info"  # of all that it finds',
        "",
        "[[tool.stepscope.suppress]]",
        f'rule = "{rule.id}"',
        'reason = "why this is as it should be"',
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
