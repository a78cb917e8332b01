import { screen } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import type { Overview, ServingPhase } from '../../api/types.gen';
import fixture from './fixture.json';
import { Serving, servingSentence } from './serving';

const DECODE: ServingPhase = {
  phase: 'decode',
  source: 'annotation',
  iteration_count: 4,
  request_count: 32,
  prompt_token_count: 0,
  output_token_count: 32,
  wall_ns: 80_000_000,
  wall_share: 0.8,
  device_busy_ns: 40_000_000,
  mean_ns: 20_000_000,
  time_per_output_token_ns: 20_000_000,
};
const UNKNOWN: ServingPhase = {
  ...DECODE,
  phase: 'unknown',
  iteration_count: 1,
  request_count: null,
  prompt_token_count: null,
  output_token_count: null,
  wall_ns: 20_000_000,
  wall_share: 0.2,
  device_busy_ns: 0,
  time_per_output_token_ns: null,
};

const shown = (serving: ServingPhase[]): void => {
  const overview = { ...(fixture as unknown as Overview), serving };
  renderInPage(<Serving overview={overview} />);
};

const cells = (): (string | null)[][] =>
  screen
    .getAllByRole('row')
    .map((row) => Array.from(row.querySelectorAll('td, th'), (cell) => cell.textContent));

describe('the phases of a serving engine', () => {
  it('are a table with a row per phase', () => {
    shown([DECODE, UNKNOWN]);
    expect(screen.getByText('5 iterations')).toBeTruthy();
    expect(cells()).toEqual([
      [
        'Phase',
        'Iterations',
        'Requests',
        'Prompt tokens',
        'Output tokens',
        'Time',
        'Mean',
        'GPU busy',
        'Per token',
      ],
      ['Decode', '4', '8', '0', '32', '80.0 ms (80.0 %)', '20.0 ms', '50.0 %', '20.0 ms'],
      ['Unknown', '1', '–', '–', '–', '20.0 ms (20.0 %)', '20.0 ms', '0.0 %', '–'],
    ]);
  });

  it('state how they were decided', () => {
    expect(servingSentence([DECODE])).toMatch(/^In decode, a request waits 20\.0 ms for an output/);
    expect(servingSentence([UNKNOWN])).toBe(
      'Phases are those that the engine’s annotations state.',
    );
    expect(servingSentence([{ ...UNKNOWN, source: 'Python call' }])).toContain('not recorded');
  });

  it('are absent for other programs', () => {
    shown([]);
    expect(screen.queryByText('Serving phases')).toBeNull();
  });
});
