/** What lies over the slices: the selection, what it is linked to, chosen times, marks, a finding. */
import type { Range } from '../../canvas/viewport';
import type { Picked } from './pick';
import type { Area } from './settings';
import type { Place, StepMark } from './wire';

/** A finding's places in the recording. */
export interface ShownFinding {
  readonly spans: readonly Range[];
  readonly events: ReadonlySet<number>;
}

export interface Overlay {
  readonly steps: readonly StepMark[];
  readonly selected: Place | null;
  /** What is selected but is no event of the file: an idle time. */
  readonly picked: Picked | null;
  readonly links: readonly Place[];
  /** The time that all views are narrowed to. */
  readonly time: Range | null;
  readonly area: Area | null;
  readonly marks: readonly number[];
  readonly finding: ShownFinding | null;
  readonly wantedNames: Uint8Array | null;
}

/** `A`, `B`, … `Z`, `AA`: what a mark is called. */
export function markName(at: number): string {
  const letter = String.fromCharCode(65 + (at % 26));
  return at < 26 ? letter : `${markName(Math.floor(at / 26) - 1)}${letter}`;
}
