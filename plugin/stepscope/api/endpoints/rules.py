"""What a rule looks at, why it matters and what to do: the page of it that comes with stepscope."""

import msgspec

from stepscope.advice.settings import available_rules, find_rule
from stepscope.api.endpoint import CatalogEndpoint, Query
from stepscope.base.errors import UnknownNameError, UsageError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
from stepscope.render import rule_page


class OfRule(Query, frozen=True, kw_only=True):
    """Which rule."""

    rule: str
    """Its id or an alias; of a rule of another package, with the slash that is in it."""


class RulePage(msgspec.Struct, frozen=True):
    """All about a rule, as `stepscope explain` prints it."""

    schema: int
    rule: str
    """The rule's id, also where it was asked for by an alias."""
    title: str
    text: str
    """Markdown: headings, paragraphs, lists, tables, code; no HTML."""


def ask(catalog: Catalog, query: OfRule) -> RulePage:
    """Answer with the page of a rule that this server asks.

    Raises:
        UnknownNameError: there is no such rule; the message names those that are nearest.
    """
    has_packages = catalog.advice is None or catalog.advice.has_packages
    try:
        rule = find_rule(query.rule, available_rules(has_packages=has_packages))
    except UsageError as error:
        raise UnknownNameError(str(error)) from error
    return RulePage(
        schema=SCHEMA_VERSION, rule=rule.id, title=rule.title, text=rule_page.render(rule)
    )


ENDPOINTS = (
    CatalogEndpoint(
        path="rules/<path:rule>",  # a package's rules have a slash in their ids
        meaning="What a rule looks at, why it matters, what to change and its options.",
        query=OfRule,
        response=RulePage,
        handler=ask,
    ),
)
