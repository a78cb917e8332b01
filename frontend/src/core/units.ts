import type { Column } from '../api/types.gen';

/** The unit of a column. */
export type Unit = Column['unit'];

export function isNumeric(unit: Unit): boolean {
  return unit !== 'text' && unit !== 'code';
}

/** The unit in the header of an exported column. */
export function unitSuffix(unit: Unit): string {
  if (unit === 'share') return ' (share of 1)';
  if (unit === 'ns' || unit === 'bytes' || unit === 'bytes/s') return ` (${unit})`;
  return '';
}
