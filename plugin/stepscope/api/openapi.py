"""The API's OpenAPI document, derived from the endpoints' types."""

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
    """Return the docstring of each field of a class and its bases.

    Python discards them, so they are read from the source, where it is installed.
    """
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith(__name__.partition(".")[0]):
            meanings.update(_of_source(base))
    return MappingProxyType(meanings)


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
    "400": "A parameter is missing, unknown or invalid, or a query cannot run (`bad-query`).",
    "404": "No run, trace or rule has this id.",
    "409": "The trace is being read (`still-loading`), or reading it was cancelled (`cancelled`).",
    "422": "The trace lacks the required data, or cannot be read.",
    "503": "The server has too much to do (`busy`), or computing takes too long (`too-slow`); "
    "`Retry-After` says when to repeat the request.",
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
            "summary": "Step time of PyTorch traces, by cause, and advice on it.",
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "servers": [{"url": "."}],
        "paths": {
            **_other_paths(),
            **{
                f"/{braced(address(endpoint))}": {"get": _operation(endpoint)}
                for endpoint in endpoints
            },
            **{f"/{braced(change.path)}": {"post": _change(change)} for change in CHANGES},
        },
        "components": {"schemas": response_schemas(endpoints, REFERENCE)},
    }


def response_schemas(
    endpoints: Iterable[Endpoint] | None = None, reference: str = "#/$defs/{name}"
) -> Schema:
    """Return the JSON Schema of every response type of the API, by name."""
    responses = [
        endpoint.response for endpoint in (all_endpoints() if endpoints is None else endpoints)
    ]
    types = [kind for kind in responses if not isinstance(kind, Bytes)]
    roots: tuple[type, ...] = tuple(dict.fromkeys((Runs, RunReport, ApiError, *types)))
    _, components = msgspec.json.schema_components(roots, ref_template=reference)
    for kind in _structs(roots):
        _describe(components[kind.__name__], kind)
    return components


def _describe(schema: Schema, kind: type) -> None:
    """Add the docstrings of a type's fields to its schema."""
    for name, meaning in field_meanings(kind).items():
        if name in schema.get("properties", {}):
            schema["properties"][name] = {**schema["properties"][name], "description": meaning}


def _structs(roots: Iterable[type]) -> set[type]:
    """Return the structs among the types and their fields, recursively."""
    structs: set[type] = set()
    waiting: list[Any] = list(roots)
    while waiting:
        kind = waiting.pop()
        if kind in structs:
            continue
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            structs.add(kind)
            waiting += get_type_hints(kind).values()
        else:
            waiting += get_args(kind)
    return structs


def braced(path: str) -> str:
    """Return a route's path as the document writes it."""
    return IN_PATH.sub(r"{\1}", path)


def _other_paths() -> Schema:
    """Return the paths without an endpoint: runs, advice and schemas."""
    return {
        "/runs": {
            "get": {
                "operationId": "runs",
                "summary": "Runs of the log directories, with the progress of reading.",
                "responses": _responses(Runs, {}),
            }
        },
        "/runs/{run}/advice": {
            "get": {
                "operationId": "runs_advice",
                "summary": "Findings and rule outcomes of a run.",
                "parameters": _parameters(AdviceQuery, ["run"]),
                "responses": _responses(RunReport),
            }
        },
        "/schema": {
            "get": {
                "operationId": "schema",
                "summary": "JSON Schema of `stepscope advise --format json`.",
                "responses": _responses(Bytes("application/json", "A JSON Schema."), {}),
            }
        },
        "/openapi.json": {
            "get": {
                "operationId": "openapi",
                "summary": "This OpenAPI document.",
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
        "description": "Any value; pages of other origins cannot send it.",
    }
    statuses = ["403", "404"] if in_path else ["403"]
    return {
        "operationId": _operation_id(change.path),
        "summary": change.meaning,
        "parameters": [*_parameters(Query, in_path), header],
        "responses": _responses(Runs, {status: CHANGE_REFUSALS[status] for status in statuses}),
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
    schemas = {name: {"type": "string"} for name in in_path} | properties
    return [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in in_path or name in required,
            "schema": _parameter_schema(schema),
            **({"description": schema["description"]} if "description" in schema else {}),
        }
        for name, schema in schemas.items()
    ]


def _parameter_schema(schema: Schema) -> Schema:
    """Return the schema of a parameter's text: null is an absent parameter."""
    parameter = {key: value for key, value in schema.items() if key not in {"anyOf", "description"}}
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        parameter = {
            **choices[0],
            **{k: v for k, v in parameter.items() if k != "default" or v is not None},
        }
    elif choices:
        parameter["anyOf"] = choices
    return parameter


def _responses(kind: ResponseType, refused: Mapping[str, str] = REFUSALS) -> Schema:
    if isinstance(kind, Bytes):
        is_json = kind.media_type == "application/json"  # a file in another format
        schema: Schema = {} if is_json else {"type": "string", "format": "binary"}
        content = {kind.media_type: {"schema": schema}}
        success = {"description": kind.meaning, "content": content}
    else:
        name = REFERENCE.format(name=kind.__name__)
        success = {
            "description": kind.__name__,
            "content": {"application/json": {"schema": {"$ref": name}}},
        }
    error = {"application/json": {"schema": {"$ref": REFERENCE.format(name="ApiError")}}}
    refusals = {
        status: {"description": meaning, "content": error} for status, meaning in refused.items()
    }
    return {"200": success, **refusals}
