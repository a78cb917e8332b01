"""A table as Parquet: exact types, units and meanings as each field's metadata; needs pyarrow."""

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, BinaryIO

import pandas as pd

from stepscope.base.errors import UsageError
from stepscope.model.frames import Column, Schema
from stepscope.render.table_file import SCHEMA_VERSION, TableHeader, cells

IS_YES_OR_NO = re.compile(r"(?:is|has|was|uses)_")
"""Names of columns of booleans with None where unknown."""


def require() -> None:
    """Check that pyarrow is installed.

    Raises:
        UsageError: it is not.
    """
    if find_spec("pyarrow") is None:
        msg = "Parquet needs pyarrow: pip install 'stepscope[parquet]'"
        raise UsageError(msg)


def write_part(frame: pd.DataFrame, schema: Schema, sink: BinaryIO) -> None:
    """Write one trace's rows as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = pa.schema([_field(column) for column in schema])
    arrays = [_array(frame[field.name], field.type) for field in fields]
    pq.write_table(pa.Table.from_arrays(arrays, schema=fields), sink)


def join(about: TableHeader, parts: Iterable[BinaryIO], sink: BinaryIO) -> None:
    """Write all traces' rows into one file, one batch of rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = pa.schema([_field(column) for column in about.schema], metadata=_header(about))
    with pq.ParquetWriter(sink, fields) as writer:
        for part in parts:
            for batch in pq.ParquetFile(part).iter_batches():
                writer.write_batch(batch.replace_schema_metadata(fields.metadata))


def type_names(schema: Schema) -> dict[str, str]:
    """Return Arrow's names of the types of columns, with text as plain text."""
    import pyarrow as pa

    types = {column.name: _type(column) for column in schema}
    return {
        name: "string" if pa.types.is_dictionary(kind) else str(kind)
        for name, kind in types.items()
    }


def _header(about: TableHeader) -> dict[str, str]:
    return {
        "stepscope.schema": str(SCHEMA_VERSION),
        "stepscope.version": about.version,
        "stepscope.table": about.table,
        "stepscope.title": about.title,
        "stepscope.meaning": about.meaning,
    }


def _field(column: Column) -> Any:  # noqa: ANN401 (pyarrow says no types)
    import pyarrow as pa

    return pa.field(
        column.name, _type(column), metadata={"unit": column.unit, "meaning": column.meaning}
    )


def _type(column: Column) -> Any:  # noqa: ANN401
    import pyarrow as pa

    if column.dtype == "category":
        return pa.dictionary(pa.int32(), pa.string())
    if column.dtype == "object":
        return pa.bool_() if IS_YES_OR_NO.match(column.name) else pa.string()
    return pa.from_numpy_dtype(column.dtype.lower())


def _array(column: pd.Series, arrow_type: Any) -> Any:  # noqa: ANN401
    import pyarrow as pa

    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy()
        texts = pa.array(column.cat.categories.tolist(), pa.string())
        indices = pa.array(codes, pa.int32(), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, texts)
    if column.dtype.kind in "iufb" and not pd.api.types.is_extension_array_dtype(column.dtype):
        return pa.array(column.to_numpy(), arrow_type, from_pandas=True)
    values = cells(column)
    if pa.types.is_string(arrow_type):
        values = [value if value is None else str(value) for value in values]
    return pa.array(values, arrow_type)
