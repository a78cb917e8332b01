/** Columns that the page itself names, as the server does those of its tables. */
import type { Column } from '../api/types.gen';

export const column = (key: string, label: string, unit: Column['unit'], help = ''): Column => ({
  key,
  label,
  unit,
  help,
  hidden: false,
});
