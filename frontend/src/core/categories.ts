/** Labels of the step categories that a response names by id only. */
export interface Words {
  readonly label: string;
  readonly help: string;
}

const WORDS: Readonly<Record<string, Words>> = {
  kernel: { label: 'Kernel', help: 'A device computes.' },
  communication: {
    label: 'Communication',
    help: 'A collective runs and no device computes; without one, no operator.',
  },
  memcpy: { label: 'Memcpy', help: 'A device copies and nothing computes or communicates.' },
  memset: { label: 'Memset', help: 'A device sets memory and does nothing else.' },
  runtime: {
    label: 'Runtime',
    help: 'The host is in a runtime call (launch, wait) and no device works.',
  },
  dataloader: {
    label: 'DataLoader',
    help: 'The host waits for the next batch and no device works.',
  },
  cpu: {
    label: 'CPU',
    help: 'The host runs an operator or a record_function range, and no device works.',
  },
  other: {
    label: 'Other',
    help: 'None of these: Python, NumPy, or unrecorded activity.',
  },
};

export function categoryWords(id: string): Words {
  return (
    WORDS[id] ?? {
      label: id.charAt(0).toUpperCase() + id.slice(1).replaceAll(/[-_]/g, ' '),
      help: '',
    }
  );
}
