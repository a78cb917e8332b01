/** Saves a run as one file that shows this page without a server. */
import { api } from '../api/client';
import type { RunState } from '../api/types.gen';
import { messageOf } from '../core/errors';
import { fileName } from '../core/export';
import { quantity } from '../core/format';
import { downloadBlob } from '../host/download';
import { toast } from '../widgets/toast';

let isBusy = false;

export async function share({ id, name }: RunState): Promise<void> {
  if (isBusy) return;
  isBusy = true;
  toast(`Writing ${name} into a file: this can take a minute`);
  try {
    const file = await api.bytes('runs/{run}/share', { run: id }, new AbortController().signal);
    downloadBlob(fileName([name], 'html'), new Blob([file], { type: 'text/html' }));
    toast(`${name} is in a file of ${quantity(file.byteLength, 'bytes')}`);
  } catch (error) {
    toast(`${name} could not be shared: ${messageOf(error)}`, { tone: 'bad' });
  } finally {
    isBusy = false;
  }
}
