/** Words for the step's categories where an answer names them by id alone. */
const LABELS: Readonly<Record<string, string>> = {
  kernel: 'Kernels',
  communication: 'Communication',
  memcpy: 'Memory copies',
  memset: 'Memory sets',
  runtime: 'Runtime calls',
  dataloader: 'Data loading',
  cpu: 'CPU operators',
  other: 'Other',
};

export function categoryLabel(id: string): string {
  return LABELS[id] ?? id.charAt(0).toUpperCase() + id.slice(1).replaceAll(/[-_]/g, ' ');
}
