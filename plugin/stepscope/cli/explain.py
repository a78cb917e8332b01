"""`stepscope explain`: what a rule looks at, why it matters, and what to do."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from stepscope.rules import Rule


@click.command(short_help="Tell all about a rule.")
@click.argument("name", metavar="RULE")
@click.option(
    "--no-plugins",
    "has_plugins",
    flag_value=False,
    default=True,
    help="Without rules of other packages.",
)
def explain(*, name: str, has_plugins: bool) -> None:
    """Tell what a rule looks at, why it matters, what to change, what that saves, and its options.

    RULE is an id, as advice shows it in brackets and `stepscope rules` lists it.

    \b
    stepscope explain dataloader-no-workers
    """
    from stepscope.advice.settings import available_rules, find_rule

    _print(find_rule(name, available_rules(has_packages=has_plugins)))


def _print(rule: "Rule[Any]") -> None:
    """Print the page: laid out in a terminal, as Markdown into a file or a pipe."""
    from stepscope.cli.output import is_coloured, width
    from stepscope.render import rule_page

    page = rule_page.render(rule)
    if not is_coloured():
        click.echo(page, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=width()).print(Markdown(page, code_theme="ansi_dark"))
