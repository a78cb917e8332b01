"""The API's OpenAPI document, made of the endpoints' own types."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

import msgspec

from stepscope._version import __version__
from stepscope.api.endpoint import Bytes, Endpoint, Query, ResponseType, address, all_endpoints
from stepscope.api.http_errors import OWN_HEADER
from stepscope.api.messages import ApiError, Runs
from stepscope.api.post_actions import CHANGES, Change
from stepscope.api.run_advice import AdviceQuery
from stepscope.base.report import RunReport


@cache
def field_meanings(kind: type) -> MappingProxyType[str, str]:
    """Return the text below each field of a class and of those it derives from; none is no entry.

    Python keeps no docstring of a field, so they are read from the source; where that was not
    installed there are none.
    """
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith(__name__.partition(".")[0]):
            found.update(_of_source(each))
    return MappingProxyType(found)


def _of_source(kind: type) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return
    [definition] = tree.body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for field, text in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield field.target.id, inspect.cleandoc(text.value.value)


REFERENCE = "#/components/schemas/{name}"
IN_PATH = re.compile(r"<(?:path:)?([a-z_]+)>")
REFUSALS = {
    "400": "A parameter is missing, unknown or not what it should be.",
    "404": "No run, recording or rule has that id.",
    "409": "It is still being read (`still-loading`), or its reading was cancelled (`cancelled`).",
    "422": "The recording does not hold what this needs, or cannot be read.",
}
CHANGE_REFUSALS = {"403": f"The header {OWN_HEADER} is missing.", "404": REFUSALS["404"]}
Schema = dict[str, Any]


def document(endpoints: Iterable[Endpoint]) -> Schema:
    """Return the OpenAPI 3.1 document of the API with these endpoints."""
    endpoints = tuple(endpoints)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "stepscope",
            "version": __version__,
            "summary": "Where the step time of PyTorch recordings goes, and what to change.",
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "servers": [{"url": "."}],
        "paths": {
            **_listed(),
            **{f"/{braced(address(each))}": {"get": _operation(each)} for each in endpoints},
            **{f"/{braced(each.path)}": {"post": _change(each)} for each in CHANGES},
        },
        "components": {"schemas": answer_schemas(endpoints, REFERENCE)},
    }


def answer_schemas(
    endpoints: Iterable[Endpoint] | None = None, reference: str = "#/$defs/{name}"
) -> Schema:
    """Return the JSON Schema of every answer of the API, by the type's name."""
    own = [each.response for each in (all_endpoints() if endpoints is None else endpoints)]
    types = [kind for kind in own if not isinstance(kind, Bytes)]
    roots: tuple[type, ...] = tuple(dict.fromkeys((Runs, RunReport, ApiError, *types)))
    _, components = msgspec.json.schema_components(roots, ref_template=reference)
    for kind in _structs(roots):
        _describe(components[kind.__name__], kind)
    return components


def _describe(schema: Schema, kind: type) -> None:
    """Add to the schema of a type what its fields mean."""
    for name, meaning in field_meanings(kind).items():
        if name in schema.get("properties", {}):
            schema["properties"][name] = {**schema["properties"][name], "description": meaning}


def _structs(roots: Iterable[type]) -> set[type]:
    """Return the types and all that they hold."""
    found: set[type] = set()
    waiting: list[Any] = list(roots)
    while waiting:
        kind = waiting.pop()
        if kind in found:
            continue
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            found.add(kind)
            waiting += get_type_hints(kind).values()
        else:
            waiting += get_args(kind)
    return found


def braced(path: str) -> str:
    """Return a route's path as the document writes it."""
    return IN_PATH.sub(r"{\1}", path)


def _listed() -> Schema:
    """What is no endpoint: the list of runs, a run's advice, and what describes the answers."""
    return {
        "/runs": {
            "get": {
                "operationId": "runs",
                "summary": "What was found, and how far reading has come.",
                "responses": _responses(Runs, {}),
            }
        },
        "/runs/{run}/advice": {
            "get": {
                "operationId": "runs_advice",
                "summary": "What the rules say of a run.",
                "parameters": _parameters(AdviceQuery, ["run"]),
                "responses": _responses(RunReport),
            }
        },
        "/schema": {
            "get": {
                "operationId": "schema",
                "summary": "What `stepscope advise --format json` prints.",
                "responses": _responses(Bytes("application/json", "A JSON Schema."), {}),
            }
        },
        "/openapi.json": {
            "get": {
                "operationId": "openapi",
                "summary": "What this document is.",
                "responses": _responses(Bytes("application/json", "An OpenAPI document."), {}),
            }
        },
    }


def _change(change: Change) -> Schema:
    in_path = IN_PATH.findall(change.path)
    header = {
        "name": OWN_HEADER,
        "in": "header",
        "required": True,
        "schema": {"type": "string"},
        "description": "Any value: no page of another origin can send it.",
    }
    statuses = ["403", "404"] if in_path else ["403"]
    return {
        "operationId": _operation_id(change.path),
        "summary": change.meaning,
        "parameters": [*_parameters(Query, in_path), header],
        "responses": _responses(Runs, {each: CHANGE_REFUSALS[each] for each in statuses}),
    }


def _operation(endpoint: Endpoint) -> Schema:
    path = address(endpoint)
    return {
        "operationId": _operation_id(path),
        "summary": endpoint.meaning,
        "parameters": _parameters(endpoint.query, IN_PATH.findall(path)),
        "responses": _responses(endpoint.response),
    }


def _operation_id(path: str) -> str:
    return re.sub(r"[^a-z]+", "_", IN_PATH.sub(r"\1", path)).strip("_")


def _parameters(query: type[Query], in_path: Sequence[str]) -> list[Schema]:
    _, components = msgspec.json.schema_components((query,), ref_template=REFERENCE)
    fields = components[query.__name__]
    _describe(fields, query)
    properties: Schema = fields.get("properties", {})
    required = set(fields.get("required", ()))
    known = {name: {"type": "string"} for name in in_path} | properties
    return [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in in_path or name in required,
            "schema": _as_given(own),
            **({"description": own["description"]} if "description" in own else {}),
        }
        for name, own in known.items()
    ]


def _as_given(schema: Schema) -> Schema:
    """Return the schema of a parameter's text: what may be null is left out of the request."""
    kept = {key: value for key, value in schema.items() if key not in {"anyOf", "description"}}
    given = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(given) == 1:
        kept = {**given[0], **{k: v for k, v in kept.items() if k != "default" or v is not None}}
    elif given:
        kept["anyOf"] = given
    return kept


def _responses(kind: ResponseType, refused: Mapping[str, str] = REFUSALS) -> Schema:
    if isinstance(kind, Bytes):
        is_json = kind.media_type == "application/json"  # a file in somebody else's format
        schema: Schema = {} if is_json else {"type": "string", "format": "binary"}
        content = {kind.media_type: {"schema": schema}}
        found = {"description": kind.meaning, "content": content}
    else:
        name = REFERENCE.format(name=kind.__name__)
        found = {
            "description": kind.__name__,
            "content": {"application/json": {"schema": {"$ref": name}}},
        }
    error = {"application/json": {"schema": {"$ref": REFERENCE.format(name="ApiError")}}}
    refusals = {
        status: {"description": meaning, "content": error} for status, meaning in refused.items()
    }
    return {"200": found, **refusals}
