"""Device time of the user's annotations (`record_function`).

As HTA has it (`get_gpu_user_annotation_breakdown`, `get_gpu_kernels_with_user_annotations`): kineto
draws each annotation on every stream that its work ran on, from the first to the last; a piece of
work belongs to the innermost annotation around it on its own stream.
"""

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.kernel_names import short
from stepscope.model import call_tree
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("name", "object", "text", "The annotation's name."),
    Column("call_count", "int64", "count", "How often it lies on a stream of the device."),
    Column("total_ns", "int64", "ns", "Sum of its durations, from first work to last (HTA)."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
    Column("min_ns", "int64", "ns", "Shortest duration."),
    Column("max_ns", "int64", "ns", "Longest duration."),
    Column("standard_deviation_ns", "float64", "ns", "Of a sample (HTA); NaN for a single one."),
    Column("own_work_count", "int64", "count", "Device work with this innermost annotation."),
    Column("own_work_ns", "int64", "ns", "Sum of the durations of that work."),
)
KERNELS: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("annotation", "object", "text", "The innermost annotation; None where none is around."),
    Column("name", "object", "text", "The work's name in short."),
    Column("full_name", "object", "text", "The work's name as the profiler wrote it."),
    Column("call_count", "int64", "count", "How often it ran there."),
    Column("total_ns", "int64", "ns", "Sum of its durations there."),
)


@computed
def innermost_annotation(trace: Trace) -> Ints:
    """Return each device event's innermost annotation, as a `device_annotations` row, or -1."""
    annotations, events = trace.device_annotations, trace.device_events
    lanes = pd.concat([frame[["device", "stream"]] for frame in (annotations, events)])
    lane = lanes.groupby(["device", "stream"], sort=False).ngroup().to_numpy()
    count = len(annotations)
    return call_tree.enclosing(
        (lane[:count], *_borders(annotations)), (lane[count:], *_borders(events))
    )


def _borders(frame: pd.DataFrame) -> tuple[Ints, Ints]:
    return frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()


@public_table(
    "device-annotations",
    SCHEMA,
    "One row per device and annotation (`record_function`, a step): how long the device was at"
    " the work under it, and how much of that work is under no annotation within it.",
)
@computed
def annotation_table(trace: Trace) -> pd.DataFrame:
    """Return one row a device and name of an annotation, longest total first."""
    frame = trace.device_annotations
    group, first = group_statistics.group_rows(frame, ("device", "name"))
    duration, count = frame["duration_ns"].to_numpy(), len(first)
    leaf = innermost_annotation(trace)
    inside = np.flatnonzero(leaf >= 0)
    leaf_group, work = group[leaf[inside]], trace.device_events["duration_ns"].to_numpy()[inside]
    return to_frame(
        SCHEMA,
        {
            "device": frame["device"].to_numpy()[first],
            "name": plain_values(frame["name"].iloc[first]),
            **group_statistics.duration_columns(SCHEMA, duration, group, count),
            "own_work_count": np.bincount(leaf_group, minlength=count),
            "own_work_ns": group_statistics.sums(work, leaf_group, count),
        },
        "-total_ns",
        "name",
    )


@public_table(
    "kernels-by-annotation",
    KERNELS,
    "One row per device, innermost annotation and name of work: how often that ran there.",
)
@computed
def annotated_kernels(trace: Trace) -> pd.DataFrame:
    """Return one row a device, innermost annotation and name of work, longest total first."""
    events, annotations = trace.device_events, trace.device_annotations["name"].cat
    around = np.append(annotations.codes.to_numpy(), -1)[innermost_annotation(trace)]
    annotation = pd.Categorical.from_codes(around, categories=annotations.categories)
    per_event = events[["device", "name"]].assign(annotation=annotation)
    group, first = group_statistics.group_rows(per_event, ("device", "annotation", "name"))
    duration, full = events["duration_ns"].to_numpy(), plain_values(per_event["name"].iloc[first])
    return to_frame(
        KERNELS,
        {
            "device": events["device"].to_numpy()[first],
            "annotation": plain_values(per_event["annotation"].iloc[first]),
            "name": np.array([short(str(text)) for text in full], dtype=object),
            "full_name": full,
            "call_count": np.bincount(group, minlength=len(first)),
            "total_ns": group_statistics.sums(duration, group, len(first)),
        },
        "-total_ns",
        "name",
    )
