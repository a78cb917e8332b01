/** The height of rows, a setting for all tables in local storage. */
import { useCallback, useState } from 'react';
import { readChoice, writeChoice } from '../../host/choice';

export type Density = 'comfortable' | 'compact';

export const ROW_PX: Readonly<Record<Density, number>> = { comfortable: 30, compact: 22 };

const CHOICE = 'density';

export function useDensity(): readonly [Density, (density: Density) => void] {
  const [density, setDensity] = useState<Density>(() =>
    readChoice(CHOICE) === 'compact' ? 'compact' : 'comfortable',
  );
  const choose = useCallback((next: Density) => {
    setDensity(next);
    writeChoice(CHOICE, next === 'comfortable' ? null : next);
  }, []);
  return [density, choose];
}
