"""Pages of the site that are made from the code when it is built, so that they never differ.

MkDocs calls `on_files` (see `hooks` in mkdocs.yml). Every table, rule and command is found by
itself; for the definitions `TERMS` says which docstring defines what.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

import click
import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from stepscope.base import calibration
from stepscope.base.formatting import share
from stepscope.base.report import json_schema
from stepscope.cli import COMMANDS
from stepscope.model.frames import Schema
from stepscope.render import rule_page
from stepscope.render.table_export import LEADING, leading
from stepscope.rules import Rule, all_rules
from stepscope.tables import RunTable, all_tables

HELP_WIDTH = 100
TERMS = MappingProxyType(
    {
        "Time and steps": {
            "Step": "stepscope.analyses.steps.step_breakdown",
            "Steps that count": "stepscope.analyses.core.window",
            "Window": "stepscope.analyses.core.window",
            "Categories of a step": "stepscope.analyses.steps.step_breakdown:CATEGORIES",
        },
        "Operators": {
            "Calls, self and total": "stepscope.analyses.operators.costs",
            "What launched what": "stepscope.analyses.core.links",
            "Autograd's wrappers": "stepscope.analyses.operators.grouping",
            "Forward and backward": "stepscope.analyses.core.forward_backward",
            "Modules": "stepscope.analyses.host.module_tree",
            "Operations (FLOPs)": "stepscope.analyses.operators.flops",
        },
        "Devices": {
            "Busy, multiprocessors, occupancy": "stepscope.analyses.devices.device_metrics",
            "Kernels": "stepscope.analyses.devices.kernel_table",
            "Launches": "stepscope.analyses.devices.kernel_launches",
            "Queue length": "stepscope.analyses.devices.queue_length",
            "Roofline": "stepscope.analyses.devices.roofline",
            "Temporal breakdown": "stepscope.analyses.devices.kernel_breakdown",
        },
        "Idle time": {
            "Idle time": "stepscope.analyses.idle.ledger",
            "Causes of idle time": "stepscope.analyses.idle.ledger:CAUSES",
            "HTA's kinds of idle time": "stepscope.analyses.idle.idle_kinds",
            "Cost of waiting": "stepscope.analyses.idle.sync_cost",
            "Critical path": "stepscope.analyses.idle.critical_path",
        },
        "Memory": {
            "Allocated and reserved": "stepscope.analyses.memory.curve",
            "Lifetime of an allocation": "stepscope.analyses.memory.memory_devices",
            "Fragmentation": "stepscope.analyses.memory.fragmentation",
            "Growth and leaks": "stepscope.analyses.memory.growth",
        },
        "Communication": {
            "Algorithm and bus bandwidth": "stepscope.analyses.core.collective_bandwidth",
            "Hidden and exposed": "stepscope.analyses.core.exposed_communication",
            "Process groups": "stepscope.analyses.communication.process_groups",
            "Clocks of ranks": "stepscope.analyses.communication.clock_alignment",
            "Stragglers": "stepscope.analyses.communication.stragglers",
        },
        "Advice": {
            "Claims and savings": "stepscope.advice.savings",
            "Settings": "stepscope.advice.settings_files",
            "Rules of other packages": "stepscope.advice.rule_packages",
            "What a program says of itself": "stepscope.analyses.settings.user_metadata",
            "Health of a recording": "stepscope.analyses.health",
        },
        "Comparing": {
            "Statistical significance": "stepscope.comparison.significance",
            "Sampled steps and ranks": "stepscope.comparison.side:SideSamples",
        },
    }
)
"""Heading to terms, each with the module, or the class in it, whose docstring defines it, or with
a mapping of names to labels and meanings."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code."""
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content="\n".join(page()) + "\n"))
    return files


def tables() -> Iterator[str]:
    """Yield the page of tables: every column of each, with type, unit and meaning."""
    yield from _heading(
        "Tables",
        "Everything that stepscope reckons can be had as a table: `stepscope export log/ --table"
        ' operators -o operators.csv`, or in Python `stepscope.table(run, "operators")`. CSV, JSON'
        " and Parquet hold the same exact numbers; what is not known is empty, null or NaN, never"
        " 0. Times are whole nanoseconds from the trace's first event.",
    )
    known = all_tables()
    yield from ("| table | a row is |", "|---|---|")
    for name, table in known.items():
        yield f"| [`{name}`](#{name}) | {_cell(table.meaning)} |"
    yield from ("", "## What tells recordings apart", "")
    yield (
        "Tables of several recordings begin with these columns; a table of whole runs has `run`"
        " alone. A table that has such a column itself keeps its own."
    )
    yield ""
    yield from _columns(LEADING)
    for name, table in known.items():
        yield from (f"## {table.title} {{ #{name} }}", "", f"`{name}`: {table.meaning}", "")
        before = ", ".join(f"`{column.name}`" for column in leading(table))
        scope = "It is made of all recordings of a run." if isinstance(table, RunTable) else ""
        yield from (f"{scope} Before its own columns: {before}.".strip(), "")
        yield from _columns(table.schema)


def _columns(schema: Schema) -> Iterator[str]:
    yield from ("| column | type | unit | meaning |", "|---|---|---|---|")
    for column in schema:
        unit = column.unit or "–"
        yield f"| `{column.name}` | {column.dtype} | {unit} | {_cell(column.meaning)} |"
    yield ""


def rules() -> Iterator[str]:
    """Yield the page that leads to the rules' own pages, and says what their savings rest on."""
    yield from _heading(
        "Rules",
        "Each piece of advice comes from a rule. It claims the time that its fix could win back, as"
        " intervals, so that savings never sum to more than the step; a symptom claims nothing.",
    )
    by_category: dict[str, list[Rule[Any]]] = {}
    for rule in all_rules():
        by_category.setdefault(rule.category, []).append(rule)
    for category in sorted(by_category):
        yield from (f"## {category.capitalize()}", "", "| rule | what it finds |", "|---|---|")
        for rule in by_category[category]:
            mark = f" ({rule.life_cycle})" if rule.life_cycle != "stable" else ""
            link = f"[{rule.id}](rules/{rule_page.file_name(rule)})"
            yield f"| {link} | {_cell(rule.title)}{mark} |"
        yield ""
    yield from _factors()


def _factors() -> Iterator[str]:
    yield from ("## What is won of claimed time { #factors }", "")
    yield from (inspect.getdoc(calibration) or "", "")
    yield from ("| factor | at least | at most | source |", "|---|---:|---:|---|")
    for name, factor in vars(calibration).items():
        if isinstance(factor, calibration.Factor):
            low, high = share(factor.low), share(factor.high)
            yield f"| `{name}` | {low} | {high} | {_cell(factor.source)} |"
    yield ""


def commands() -> Iterator[str]:
    """Yield the page of commands: the help of each."""
    yield from _heading(
        "Command line",
        "Wherever a path stands, an address may stand (`s3://…`, `gs://…`, see the README). Exit"
        " status 2 means that nothing could be done; what else a command can end with, it says.",
    )
    for command in COMMANDS:
        name = f"stepscope {command.name}"
        context = click.Context(command, info_name=name, max_content_width=HELP_WIDTH)
        context.terminal_width = HELP_WIDTH
        summary = command.get_short_help_str(limit=HELP_WIDTH)
        help_text = re.sub(r"[ \t]+$", "", command.get_help(context), flags=re.MULTILINE)
        yield from (f"## {name}", "", summary, "", "```text", help_text, "```", "")


def definitions() -> Iterator[str]:
    """Yield the page of definitions, each in the words of the code that reckons it."""
    yield from _heading(
        "Definitions",
        "Each figure is defined once, in one file; these are those files' own words.",
    )
    for heading, terms in TERMS.items():
        yield from (f"## {heading}", "")
        for term, source in terms.items():
            yield from (f"### {term}", "")
            yield from _definition(source)
            yield from ("", f"Defined in `{source.replace(':', '.')}`.", "")


def _definition(source: str) -> Iterator[str]:
    """Yield what a module, a class or a mapping says."""
    module, _, name = source.partition(":")
    found = import_module(module)
    found = getattr(found, name) if name else found
    if isinstance(found, Mapping):
        yield from ("| name | label | meaning |", "|---|---|---|")
        for key, (label, meaning) in found.items():
            yield f"| `{key}` | {label} | {_cell(meaning)} |"
        return
    text = inspect.getdoc(found)
    if not text:
        raise ValueError(source)
    yield text


def _heading(title: str, text: str) -> Iterator[str]:
    yield from (f"# {title}", "", text, "")


def _cell(text: str) -> str:
    """Return text as it may stand in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def schema() -> Iterator[str]:
    """Yield the JSON Schema of the report, which is no page: programs fetch it."""
    yield msgspec.json.format(msgspec.json.encode(json_schema()), indent=1).decode()


PAGES: MappingProxyType[str, Callable[[], Iterator[str]]] = MappingProxyType(
    {
        "tables.md": tables,
        "rules.md": rules,
        "cli.md": commands,
        "definitions.md": definitions,
        "report.schema.json": schema,
    }
)
