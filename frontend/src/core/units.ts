import type { Column } from '../api/types.gen';

/** What a number of the API is a number of. */
export type Unit = Column['unit'];

/** Units whose values are numbers, set in columns of digits. */
export function isNumeric(unit: Unit): boolean {
  return unit !== 'text' && unit !== 'code';
}

/** The unit as a column's header names it in an export. */
export function unitSuffix(unit: Unit): string {
  if (unit === 'share') return ' (share of 1)';
  if (unit === 'ns' || unit === 'bytes' || unit === 'bytes/s') return ` (${unit})`;
  return '';
}
