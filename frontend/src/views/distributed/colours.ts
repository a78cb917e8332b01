/** How the parts of a rank's step look: hues of the page's categories, stripes where two things run at once or one only waits. */
import { colourOf } from '../../core/colour';

const compute = colourOf('kernel');
const send = colourOf('communication');

const stripes = (one: string, other: string): string =>
  `repeating-linear-gradient(135deg, ${one} 0 4px, ${other} 4px 8px)`;

const FILLS: Readonly<Record<string, string>> = {
  computing: compute,
  overlapped: stripes(compute, send),
  transfer: send,
  waiting: stripes(send, `color-mix(in srgb, ${send} 35%, var(--surface))`),
  copies: colourOf('memcpy'),
  loading: colourOf('dataloader'),
  other: colourOf('other'),
};

export const fillOfPart = (id: string): string => FILLS[id] ?? colourOf(id);
