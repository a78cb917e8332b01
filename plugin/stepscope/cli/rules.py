"""`stepscope rules`: list the rules and whether they are on."""

import dataclasses
import sys
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import click

from stepscope.cli.advice_options import RuleOptions, with_rules
from stepscope.cli.output import print_document, width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.rules import Rule

Format = Literal["text", "json"]
LEAST_COLUMNS = 30
"""Columns for a title next to its rule; with fewer it has lines of its own."""


@click.command(short_help="List the rules of advice.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="JSON is a list of objects, with default, meaning and origin of every option.",
)
@click.option("--options", "has_options", is_flag=True, help="Also print origins and options.")
@with_rules
def rules(*, form: Format, has_options: bool, rule_options: RuleOptions) -> None:
    """List every rule: its name, title, and whether it is on.

    The settings file and the options turn rules on and off, as for `stepscope advise`.

    \b
    stepscope rules
    stepscope rules --select communication --preview --options
    stepscope rules --format json | jq '.[] | {id, options}'
    stepscope explain RULE
    """
    from stepscope.advice.rule_packages import package_rules
    from stepscope.advice.settings import available_rules, selected_rules

    settings = rule_options.settings()
    every_rule = available_rules(has_packages=settings.has_packages)
    selected = {rule.id: rule for rule in selected_rules(settings.changes, every_rule)}
    if form == "json":
        _print_json([(selected.get(rule.id, rule), rule.id in selected) for rule in every_rule])
    else:
        shown = tuple(selected.get(rule.id, rule) for rule in every_rule)
        _print_text(shown, set(selected), has_options=has_options)
    for problem in package_rules()[1] if settings.has_packages else ():
        message = f"stepscope: {problem.path}: {problem.message} {problem.remedy}"
        click.echo(message, err=True)


def _print_text(shown: "tuple[Rule[Any], ...]", on: set[str], *, has_options: bool) -> None:
    id_width = max((len(rule.id) for rule in shown), default=0)
    by_category: dict[str, list[Rule[Any]]] = {}
    for rule in shown:
        by_category.setdefault(rule.category, []).append(rule)
    for category in sorted(by_category):
        click.echo(f"{category}:")
        for rule in by_category[category]:
            marks: list[str] = [rule.life_cycle] if rule.life_cycle != "stable" else []
            marks += [rule.package] if rule.package else []
            marks += ["off"] if rule.id not in on else []
            mark = f"  ({', '.join(marks)})" if marks else ""
            click.echo(_wrapped(f"  {rule.id:<{id_width}}  ", f"{rule.title}{mark}"))
            for line in _options(rule) if has_options else ():
                click.echo(f"      {line}")
    click.echo(f"{len(on)} of {len(shown)} are on. `stepscope explain RULE` explains a rule.")


def _wrapped(start: str, text: str) -> str:
    """Return a line of a list; in a terminal, wrapped below itself, or below its start."""
    if not sys.stdout.isatty():
        return start + text
    columns = width()
    if columns - len(start) < LEAST_COLUMNS:
        indent = 2 * " " + start[: len(start) - len(start.lstrip())]
        below = fill(text, columns, initial_indent=indent, subsequent_indent=indent)
        return f"{start.rstrip()}\n{below}"
    return fill(text, columns, initial_indent=start, subsequent_indent=len(start) * " ")


def _options(rule: "Rule[Any]") -> "Iterator[str]":
    """Yield the origin of a rule, and its options with their values."""
    yield f"from {rule.origin}"
    for option in dataclasses.fields(rule.options):
        value = getattr(rule.options, option.name)
        yield f"{option.name} = {value}: {option.metadata.get('meaning', '')}"


def _print_json(rules: "list[tuple[Rule[Any], bool]]") -> None:
    import msgspec

    objects = [
        {
            "id": rule.id,
            "title": rule.title,
            "category": rule.category,
            "on": is_on,
            "life_cycle": rule.life_cycle,
            "since": rule.since,
            "scope": rule.scope,
            "effort": rule.effort,
            "risk": rule.risk,
            "package": rule.package,
            "origin": rule.origin,
            "aliases": rule.aliases,
            "options": {
                option.name: {
                    "value": getattr(rule.options, option.name),
                    "default": option.default,
                    "meaning": option.metadata.get("meaning", ""),
                    "origin": option.metadata.get("origin", ""),
                }
                for option in dataclasses.fields(rule.options)
            },
        }
        for rule, is_on in rules
    ]
    print_document(msgspec.json.format(msgspec.json.encode(objects), indent=2).decode() + "\n")
