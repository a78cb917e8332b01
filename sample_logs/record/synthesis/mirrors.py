"""`gpu_user_annotation`: the device's copy of a host annotation, first work to last."""

from collections.abc import Iterator, Sequence

from synthesis.recording import Record


class Mirrors:
    """Collects, for each annotation and stream, the extent of the work launched inside."""

    def __init__(self) -> None:
        self._extents: dict[tuple[int, int], tuple[int, int]] = {}

    def note(self, work: Record, annotation_ids: Sequence[int]) -> None:
        """Note device work that was launched while annotations were open."""
        for annotation_id in annotation_ids:
            key = (annotation_id, work.lane)
            start_ns, end_ns = self._extents.get(key, (work.start_ns, work.end_ns))
            self._extents[key] = (min(start_ns, work.start_ns), max(end_ns, work.end_ns))

    def records(self, host_records: Sequence[Record]) -> Iterator[Record]:
        """Yield one mirror for each annotation and stream that had work."""
        names = {
            record.external_id: record.name
            for record in host_records
            if record.kind == "annotation"
        }
        for (annotation_id, stream), (start_ns, end_ns) in self._extents.items():
            yield Record(
                kind="mirror",
                name=names[annotation_id],
                start_ns=start_ns,
                dur_ns=end_ns - start_ns,
                lane=stream,
                external_id=annotation_id,
            )
