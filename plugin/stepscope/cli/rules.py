"""`stepscope rules`: what is looked for, and what of it is on."""

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import click

from stepscope.cli.advice_options import Asked, with_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.rules import Rule

Format = Literal["text", "json"]


@click.command(short_help="List the rules that advice comes from.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="JSON is a list of objects, with every option's default, meaning and origin.",
)
@click.option("--options", "has_options", is_flag=True, help="With origins, and every option.")
@with_rules
def rules(*, form: Format, has_options: bool, asked: Asked) -> None:
    """List every rule: its name, whether it is on, and the state that it looks for.

    Which are on follows from the configuration and the options, as for `stepscope advise`.

    \b
    stepscope rules
    stepscope rules --select communication --preview --options
    stepscope rules --format json | jq '.[] | {id, options}'
    stepscope explain RULE
    """
    from stepscope.advice.rule_packages import package_rules
    from stepscope.advice.settings import available_rules, selected_rules

    settings = asked.settings()
    known = available_rules(has_packages=settings.has_packages)
    asked_for = {rule.id: rule for rule in selected_rules(settings.changes, known)}
    if form == "json":
        _print_json([(asked_for.get(rule.id, rule), rule.id in asked_for) for rule in known])
    else:
        chosen = tuple(asked_for.get(rule.id, rule) for rule in known)
        _print_text(chosen, set(asked_for), has_options=has_options)
    for problem in package_rules()[1] if settings.has_packages else ():
        message = f"stepscope: {problem.path}: {problem.message} {problem.remedy}"
        click.echo(message, err=True)


def _print_text(known: "tuple[Rule[Any], ...]", on: set[str], *, has_options: bool) -> None:
    width = max((len(rule.id) for rule in known), default=0)
    by_category: dict[str, list[Rule[Any]]] = {}
    for rule in known:
        by_category.setdefault(rule.category, []).append(rule)
    for category in sorted(by_category):
        click.echo(f"{category}:")
        for rule in by_category[category]:
            marks: list[str] = [rule.life_cycle] if rule.life_cycle != "stable" else []
            marks += [rule.package] if rule.package else []
            marks += ["off"] if rule.id not in on else []
            mark = f"  ({', '.join(marks)})" if marks else ""
            click.echo(f"  {rule.id:<{width}}  {rule.title}{mark}")
            for line in _options(rule) if has_options else ():
                click.echo(f"      {line}")
    click.echo(f"{len(on)} of {len(known)} are on. `stepscope explain RULE` tells all about one.")


def _options(rule: "Rule[Any]") -> "Iterator[str]":
    """Yield where a rule comes from, and its options as they are set."""
    yield f"from {rule.origin}"
    for each in dataclasses.fields(rule.options):
        value = getattr(rule.options, each.name)
        yield f"{each.name} = {value}: {each.metadata.get('meaning', '')}"


def _print_json(rules: "list[tuple[Rule[Any], bool]]") -> None:
    import msgspec

    told = [
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
                each.name: {
                    "value": getattr(rule.options, each.name),
                    "default": each.default,
                    "meaning": each.metadata.get("meaning", ""),
                    "origin": each.metadata.get("origin", ""),
                }
                for each in dataclasses.fields(rule.options)
            },
        }
        for rule, is_on in rules
    ]
    click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
