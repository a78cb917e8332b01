"""Pages of the site that are generated from the code at each build, so that they never differ.

MkDocs calls `on_files` (see `hooks` in mkdocs.yml). All tables, rules and commands are included
automatically; for the definitions, `TERMS` maps each term to a docstring.
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
from stepscope.cli import COMMANDS, cli
from stepscope.model.frames import Schema
from stepscope.render import rule_page
from stepscope.render.table_export import LEADING, leading
from stepscope.rules import Rule, all_rules
from stepscope.tables import RunTable, all_tables

HELP_WIDTH = 100
SHELL_COMPLETION = (
    "## Shell completion",
    "",
    "Shells complete commands, options, and names of rules, tables, runs and workers after one of"
    " these lines in `~/.bashrc`, `~/.zshrc` or `~/.config/fish/completions/stepscope.fish`:",
    "",
    "```bash",
    'eval "$(_STEPSCOPE_COMPLETE=bash_source stepscope)"    # bash',
    'eval "$(_STEPSCOPE_COMPLETE=zsh_source stepscope)"     # zsh',
    "_STEPSCOPE_COMPLETE=fish_source stepscope | source     # fish",
    "```",
)
TERMS = MappingProxyType(
    {
        "Time and steps": {
            "Step": "stepscope.analyses.steps.step_breakdown",
            "Counted steps": "stepscope.analyses.core.window",
            "Window": "stepscope.analyses.core.window",
            "Categories of a step": "stepscope.analyses.steps.step_breakdown:CATEGORIES",
        },
        "Operators": {
            "Calls, self and total": "stepscope.analyses.operators.costs",
            "Launches of operators": "stepscope.analyses.core.links",
            "Autograd's wrappers": "stepscope.analyses.operators.grouping",
            "Forward and backward": "stepscope.analyses.core.forward_backward",
            "Modules": "stepscope.analyses.host.module_tree",
            "Operations (FLOPs)": "stepscope.analyses.operators.flops",
            "Bytes of operators": "stepscope.analyses.operators.operator_traffic",
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
            "Hints of the program": "stepscope.analyses.settings.user_metadata",
            "Health of a trace": "stepscope.analyses.health",
        },
        "Comparison": {
            "Statistical significance": "stepscope.comparison.significance",
            "Sampled steps and ranks": "stepscope.comparison.side:SideSamples",
        },
    }
)
"""Heading to terms, each with the module or class whose docstring defines it, or with a mapping of
names to labels and meanings."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are generated from the code."""
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content="\n".join(page()) + "\n"))
    return files


def tables() -> Iterator[str]:
    """Yield the page of tables: all columns, with type, unit and meaning."""
    yield from _heading(
        "Tables",
        "All results of stepscope are available as tables: on the command line with `stepscope"
        " export log/ --table operators -o operators.csv`, in Python with"
        ' `stepscope.table(run, "operators")`. CSV, JSON and Parquet hold the same exact numbers.'
        " Unknown values are empty, null or NaN, never 0. Times are whole nanoseconds from the"
        " first event of the trace.",
    )
    tables = all_tables()
    yield from ("| table | rows |", "|---|---|")
    for name, table in tables.items():
        yield f"| [`{name}`](#{name}) | {_cell(table.meaning)} |"
    yield from ("", "## Columns that identify the trace", "")
    yield (
        "Tables of several traces begin with these columns; tables of whole runs begin with `run`"
        " only. If a table already has such a column, that column remains."
    )
    yield ""
    yield from _columns(LEADING)
    for name, table in tables.items():
        yield from (f"## {table.title} {{ #{name} }}", "", f"`{name}`: {table.meaning}", "")
        first = ", ".join(f"`{column.name}`" for column in leading(table))
        scope = "Computed from all traces of a run." if isinstance(table, RunTable) else ""
        yield from (f"{scope} First columns: {first}.".strip(), "")
        yield from _columns(table.schema)


def _columns(schema: Schema) -> Iterator[str]:
    yield from ("| column | type | unit | meaning |", "|---|---|---|---|")
    for column in schema:
        unit = column.unit or "–"
        yield f"| `{column.name}` | {column.dtype} | {unit} | {_cell(column.meaning)} |"
    yield ""


def rules() -> Iterator[str]:
    """Yield the page with links to all rules, and with the factors of their savings."""
    yield from _heading(
        "Rules",
        "Each finding comes from a rule. A rule claims the time intervals that its fix could save,"
        " so that savings never sum to more than the step. A symptom claims nothing.",
    )
    by_category: dict[str, list[Rule[Any]]] = {}
    for rule in all_rules():
        by_category.setdefault(rule.category, []).append(rule)
    for category in sorted(by_category):
        yield from (f"## {category.capitalize()}", "", "| rule | finding |", "|---|---|")
        for rule in by_category[category]:
            mark = f" ({rule.life_cycle})" if rule.life_cycle != "stable" else ""
            link = f"[{rule.id}](rules/{rule_page.file_name(rule)})"
            yield f"| {link} | {_cell(rule.title)}{mark} |"
        yield ""
    yield from _factors()


def _factors() -> Iterator[str]:
    yield from ("## Factors of savings { #factors }", "")
    yield from (inspect.getdoc(calibration) or "", "")
    yield from ("| factor | at least | at most | source |", "|---|---:|---:|---|")
    for name, factor in vars(calibration).items():
        if isinstance(factor, calibration.Factor):
            low, high = share(factor.low), share(factor.high)
            fitted = f" (fitted on the pairs {', '.join(factor.pairs)})" if factor.pairs else ""
            yield f"| `{name}` | {low} | {high} | {_cell(factor.source + fitted)} |"
    yield ""


def commands() -> Iterator[str]:
    """Yield the page of commands: the help text of each."""
    yield from _heading(
        "Command line",
        "Paths can also be URLs (`s3://…`, `gs://…`; see [Logs](logs.md)). Color follows"
        " `NO_COLOR`, `FORCE_COLOR` and `TERM`; progress goes to standard error, and only if that"
        " is a terminal.",
    )
    yield from (*SHELL_COMPLETION, "")
    for command in (cli, *COMMANDS):
        name = "stepscope" if command is cli else f"stepscope {command.name}"
        context = click.Context(command, info_name=name, max_content_width=HELP_WIDTH)
        context.terminal_width = HELP_WIDTH
        summary = command.get_short_help_str(limit=HELP_WIDTH)
        help_text = re.sub(r"[ \t]+$", "", command.get_help(context), flags=re.MULTILINE)
        yield from (f"## {name}", "", summary, "", "```text", help_text, "```", "")
    yield from ("## Man pages", "")
    yield "In a clone, `make man` writes the man pages: `man -M build/man stepscope`."
    yield ""


def definitions() -> Iterator[str]:
    """Yield the page of definitions, from the docstrings of the code that computes them."""
    yield from _heading(
        "Definitions",
        "Each figure has one definition, in one file. This page shows the docstrings of these"
        " files.",
    )
    for heading, terms in TERMS.items():
        yield from (f"## {heading}", "")
        for term, source in terms.items():
            yield from (f"### {term}", "")
            yield from _definition(source)
            yield from ("", f"Defined in `{source.replace(':', '.')}`.", "")


def _definition(source: str) -> Iterator[str]:
    """Yield the docstring of a module or class, or the table of a mapping."""
    module, _, name = source.partition(":")
    documented = import_module(module)
    documented = getattr(documented, name) if name else documented
    if isinstance(documented, Mapping):
        yield from ("| name | label | meaning |", "|---|---|---|")
        for key, (label, meaning) in documented.items():
            yield f"| `{key}` | {label} | {_cell(meaning)} |"
        return
    text = inspect.getdoc(documented)
    if not text:
        raise ValueError(source)
    yield text


def _heading(title: str, text: str) -> Iterator[str]:
    yield from (f"# {title}", "", text, "")


def _cell(text: str) -> str:
    """Return text escaped for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def schema() -> Iterator[str]:
    """Yield the JSON Schema of the report, a file for programs."""
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
