/** Exports: search results as a table; subtitle and legend of the picture. Pure. */
import type { Column } from '../../api/types.gen';
import { shade, type Theme } from '../../canvas/colours';
import type { Range } from '../../canvas/viewport';
import { colourId } from '../../core/colour';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import { instant } from '../../core/format';
import type { LegendEntry } from '../../widgets/png';
import { categoryLabel, trackLabel } from './slice_labels';
import type { Hit, SliceCategory, Timeline } from './wire';

const COLUMNS: readonly Column[] = [
  column('name', 'Name', 'code'),
  column('start', 'Start', 'ns', 'From the first event of the trace'),
  column('duration', 'Duration', 'ns'),
  column('category', 'Category', 'text'),
  column('track', 'Track', 'text'),
  column(
    'event',
    'Event',
    'count',
    'Its position in the file; empty for idle times, which no event stands for',
  ),
];

export function exportOf(hits: readonly Hit[], { tracks, categories }: Timeline): ExportTable {
  const rows = hits.map((hit) => [
    hit.name,
    hit.start_ns,
    hit.duration_ns,
    categoryLabel(categories, hit.category),
    trackLabel(tracks, hit.track),
    hit.event,
  ]);
  return { columns: COLUMNS, rows };
}

export const legendOf = (categories: readonly SliceCategory[], theme: Theme): LegendEntry[] =>
  categories.map(({ id, label }) => ({
    label,
    colour: shade(colourId(id), 0, theme),
  }));

/** The names of the trace, and the visible range. */
export const subtitleOf = (traceName: readonly string[], { start, end }: Range): string =>
  `${traceName.join(', ')}: ${instant(start)} to ${instant(end)}`;
