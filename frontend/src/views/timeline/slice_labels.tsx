import type { ReactNode } from 'react';
import { shade, shadeNumber } from '../../canvas/colours';
import { colourId } from '../../core/colour';
import { duration, instant, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { useTheme } from '../../host/theme';
import { PlainTable } from '../../widgets/plain_table';
import type { Hit, SliceCategory, Timeline, Track } from './wire';

interface SwatchProps {
  readonly category: string;
  readonly name?: string;
}

/** The colour of a slice, or without a name that of a category. */
export function Swatch({ category, name }: SwatchProps): ReactNode {
  const theme = useTheme();
  const which = name === undefined ? 0 : shadeNumber(name);
  const fill = shade(colourId(category), which, theme);
  return <span className="swatch" style={{ background: fill }} aria-hidden="true" />;
}

export const categoryLabel = (categories: readonly SliceCategory[], id: string): string =>
  categories.find((category) => category.id === id)?.label ?? id;

export const trackLabel = (tracks: readonly Track[], id: number): string => {
  const track = tracks.find((other) => other.id === id);
  const parent = tracks.find((other) => other.id === track?.parent);
  return [parent?.label, track?.label].filter(Boolean).join(', ');
};

/** A rounded duration with the exact one on hover. */
export function Time({ ns }: { readonly ns: number }): ReactNode {
  return <span title={quantityExact(ns, 'ns')}>{duration(ns)}</span>;
}

interface HitsProps {
  readonly caption: string;
  readonly hits: readonly Hit[];
  readonly timeline: Timeline;
  readonly selected: number | null;
  readonly onSelect: (hit: Hit) => void;
}

/** Slices as a table: search results, or the slices of a track. */
export function HitsTable({ caption, hits, timeline, selected, onSelect }: HitsProps): ReactNode {
  const { tracks, categories } = timeline;
  return (
    <PlainTable
      className="plain slices-table"
      caption={caption}
      rows={hits}
      keyOf={(hit, at) => `${at} ${hit.event} ${hit.start_ns}`}
      rowProps={({ event }) => ({ 'aria-selected': event !== null && event === selected })}
      columns={[
        {
          label: 'Name',
          isHeader: true,
          cell: (hit) => (
            <>
              <Swatch category={hit.category} name={hit.name} />{' '}
              <button type="button" title={hit.name} onClick={() => onSelect(hit)}>
                {shortName(hit.name)}
              </button>
            </>
          ),
        },
        {
          label: 'Start',
          isNumber: true,
          title: (hit) => quantityExact(hit.start_ns, 'ns'),
          cell: (hit) => instant(hit.start_ns),
        },
        { label: 'Duration', isNumber: true, cell: (hit) => <Time ns={hit.duration_ns} /> },
        { label: 'Category', cell: (hit) => categoryLabel(categories, hit.category) },
        {
          label: 'Track',
          className: 'track-cell',
          cell: (hit) => trackLabel(tracks, hit.track),
        },
      ]}
    />
  );
}
