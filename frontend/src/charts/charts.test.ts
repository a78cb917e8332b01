import { expect, it } from 'vitest';
import { drawnValues } from './series_drawing';
import { upperEdges } from './step_columns';
import type { Line } from './time_series_types';

const line = (id: string, values: (number | null)[], stack?: string): Line => ({
  id,
  label: id,
  colour: '#000000',
  values,
  ...(stack === undefined ? {} : { stack }),
});

it('sets each category of a step on those before it, up to the whole step', () => {
  const steps = [
    { number: 3, name: 'ProfilerStep#3', partsNs: [10, 0, 5] },
    { number: 4, name: 'ProfilerStep#4', partsNs: [1, 2, 3] },
  ];
  expect(upperEdges(steps, 3)).toEqual([
    [10, 1],
    [10, 3],
    [15, 6],
  ]);
});

it('sets the lines of a stack on each other, and leaves others where they are', () => {
  const lines = [line('a', [1, 2], 's'), line('b', [null, 5]), line('c', [10, null], 's')];
  expect(drawnValues(lines)).toEqual([
    [1, 2],
    [null, 5],
    [11, 2],
  ]);
});
