/** Columns of tables that the page builds itself. */
import type { Column } from '../api/types.gen';

export const column = (key: string, label: string, unit: Column['unit'], help = ''): Column => ({
  key,
  label,
  unit,
  help,
  hidden: false,
});
