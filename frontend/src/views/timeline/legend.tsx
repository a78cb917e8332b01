/** The colours of the categories that were drawn so far. */
import { type ReactNode, useEffect, useState } from 'react';
import { Swatch } from './slice_labels';
import type { Engine } from './use_viewer';
import type { SliceCategory } from './wire';

const IDLE = /^Idle: /;

function Entries({ categories }: { readonly categories: readonly SliceCategory[] }): ReactNode {
  return categories.map(({ id, label }) => (
    <li key={id}>
      <Swatch category={id} />
      {label.replace(IDLE, '')}
    </li>
  ));
}

export function Legend({ engine }: { readonly engine: Engine }): ReactNode {
  const { viewer, palette } = engine;
  // Categories are added as slices come into sight, and stay.
  const [, setCount] = useState(palette.drawnCount);
  useEffect(() => viewer.onPainted(() => setCount(palette.drawnCount)), [viewer, palette]);
  const drawn = palette.drawn();
  const idle = drawn.filter(({ label }) => IDLE.test(label));
  return (
    <div className="timeline-legend" title="Colours by category; each name has its own shade">
      <ul aria-label="Colours of categories">
        <Entries categories={drawn.filter((category) => !idle.includes(category))} />
      </ul>
      {idle.length > 0 && (
        <ul aria-label="Colours of idle causes">
          <li className="strong">Idle by cause:</li>
          <Entries categories={idle} />
        </ul>
      )}
    </div>
  );
}
