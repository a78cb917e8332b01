"""`stepscope schema`: print the JSON Schema of a report."""

import click

from stepscope.cli.output import print_document


@click.command(short_help="Print the JSON Schema of `advise --format json`.")
@click.option("--api", is_flag=True, help="Print the OpenAPI document of the page's API instead.")
@click.option(
    "--compare", is_flag=True, help="Print the schema of `compare --format json` instead."
)
def schema(*, api: bool, compare: bool) -> None:
    """Print the JSON Schema (draft 2020-12) of `stepscope advise --format json`.

    \b
    stepscope schema > report.schema.json
    """
    import msgspec

    from stepscope.api.endpoint import all_endpoints
    from stepscope.api.openapi import document as api_document
    from stepscope.base.report import json_schema
    from stepscope.comparison import messages

    if api:
        document = api_document(all_endpoints())
    else:
        document = messages.json_schema() if compare else json_schema()
    print_document(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
