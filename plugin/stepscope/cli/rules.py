"""`stepscope rules`: what is looked for."""

import click


@click.command(short_help="List the rules that advice comes from.")
def rules() -> None:
    """List every rule: its name, and the state that it looks for.

    \b
    stepscope rules
    """
    from stepscope.rules import all_rules

    known = all_rules()
    width = max((len(rule.id) for rule in known), default=0)
    for rule in known:
        click.echo(f"{rule.id:<{width}}  {rule.title}")
