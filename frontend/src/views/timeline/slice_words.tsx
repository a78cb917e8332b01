import { type ReactNode, useSyncExternalStore } from 'react';
import { shade, shadeNumber } from '../../canvas/colours';
import { colourId } from '../../core/colour';
import { duration, instant, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { themeStore } from '../../host/theme';
import type { Hit, SliceCategory, Track } from './wire';

/** A slice's colour beside its words. */
export function Swatch({
  category,
  name,
}: {
  readonly category: string;
  readonly name: string;
}): ReactNode {
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const fill = shade(colourId(category), shadeNumber(name), theme);
  return <span className="swatch" style={{ background: fill }} aria-hidden="true" />;
}

export const categoryLabel = (categories: readonly SliceCategory[], id: string): string =>
  categories.find((category) => category.id === id)?.label ?? id;

export const trackLabel = (tracks: readonly Track[], id: number): string => {
  const track = tracks.find((each) => each.id === id);
  const parent = tracks.find((each) => each.id === track?.parent);
  return [parent?.label, track?.label].filter(Boolean).join(', ');
};

/** A time, short to read, exact on hover. */
export function Time({ ns }: { readonly ns: number }): ReactNode {
  return <span title={quantityExact(ns, 'ns')}>{duration(ns)}</span>;
}

interface HitsProps {
  readonly caption: string;
  readonly hits: readonly Hit[];
  readonly tracks: readonly Track[];
  readonly categories: readonly SliceCategory[];
  readonly selected: number | null;
  readonly onSelect: (hit: Hit) => void;
}

/** Slices as a real table: what a search found, what is on a track. */
export function HitsTable(props: HitsProps): ReactNode {
  const { caption, hits, tracks, categories, selected, onSelect } = props;
  return (
    <table className="slices-table">
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col" className="number">
            Start
          </th>
          <th scope="col" className="number">
            Duration
          </th>
          <th scope="col">Category</th>
          <th scope="col">Track</th>
        </tr>
      </thead>
      <tbody>
        {hits.map((hit, at) => (
          <tr
            // biome-ignore lint/suspicious/noArrayIndexKey: idle times have no event of their own
            key={`${at} ${hit.event} ${hit.start_ns}`}
            aria-selected={hit.event !== null && hit.event === selected}
          >
            <th scope="row">
              <Swatch category={hit.category} name={hit.name} />{' '}
              <button type="button" title={hit.name} onClick={() => onSelect(hit)}>
                {shortName(hit.name)}
              </button>
            </th>
            <td className="number" title={quantityExact(hit.start_ns, 'ns')}>
              {instant(hit.start_ns)}
            </td>
            <td className="number">
              <Time ns={hit.duration_ns} />
            </td>
            <td>{categoryLabel(categories, hit.category)}</td>
            <td className="track-cell">{trackLabel(tracks, hit.track)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
