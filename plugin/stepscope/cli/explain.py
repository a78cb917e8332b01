"""`stepscope explain`: print the page of a rule."""

from typing import TYPE_CHECKING, Any

import click

from stepscope.cli import completion

if TYPE_CHECKING:
    from stepscope.rules import Rule


@click.command(short_help="Explain a rule: check, reason, fix, saving, options.")
@click.argument("name", metavar="RULE", shell_complete=completion.rules)
@click.option(
    "--no-plugins",
    "has_plugins",
    flag_value=False,
    default=True,
    help="Do not load rules of other packages.",
)
def explain(*, name: str, has_plugins: bool) -> None:
    """Print what a rule checks, why it matters, what to change, the saving, and the options.

    RULE is an id, which `stepscope advise` prints in brackets and `stepscope rules` lists.

    \b
    stepscope explain dataloader-no-workers
    """
    from stepscope.advice.settings import available_rules, find_rule

    _print(find_rule(name, available_rules(has_packages=has_plugins)))


def _print(rule: "Rule[Any]") -> None:
    """Print the page: formatted in a terminal, as Markdown to a file or pipe."""
    from stepscope.cli.output import is_coloured, width
    from stepscope.render import rule_page

    page = rule_page.render(rule)
    if not is_coloured():
        click.echo(page, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=width()).print(Markdown(page, code_theme="ansi_dark"))
