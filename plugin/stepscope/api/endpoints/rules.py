"""The page of a rule: its check, its relevance and its fixes."""

from stepscope.advice.settings import available_rules, find_rule
from stepscope.api.endpoint import Query, catalog_endpoint
from stepscope.api.messages import Response
from stepscope.base.errors import UnknownNameError, UsageError
from stepscope.catalog.catalog import Catalog
from stepscope.render import rule_page


class OfRule(Query, frozen=True, kw_only=True):
    """The rule."""

    rule: str
    """Its id or an alias; the id of another package's rule contains a slash."""


class RulePage(Response, frozen=True, kw_only=True):
    """The description of a rule, as `stepscope explain` prints it."""

    rule: str
    """The rule's id, also for a request by an alias."""
    title: str
    text: str
    """Markdown: headings, paragraphs, lists, tables, code; no HTML."""


def page(catalog: Catalog, query: OfRule) -> RulePage:
    """Return the description, fixes and options of a rule.

    Raises:
        UnknownNameError: the rule does not exist; the message lists similar ids.
    """
    has_packages = catalog.advice is None or catalog.advice.has_packages
    try:
        rule = find_rule(query.rule, available_rules(has_packages=has_packages))
    except UsageError as error:
        raise UnknownNameError(str(error)) from error
    return RulePage(rule=rule.id, title=rule.title, text=rule_page.render(rule))


# The ids of other packages' rules contain a slash.
ENDPOINTS = (catalog_endpoint("rules/<path:rule>", page),)
