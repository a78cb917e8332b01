/** How high rows are: the user's choice for all tables, which the browser keeps. */
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
