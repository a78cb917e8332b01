/** The saving of a finding that counts: in the decisive step, as severity and order use it. */
import type { ClaimReport } from '../api/types.gen';
import { duration } from './format';

export interface DecisiveSaving {
  /** The most that the finding saves alone. */
  readonly grossNs: number;
  readonly lowNs: number;
  readonly highNs: number;
  /** `highNs` as a fraction of the step. */
  readonly share: number;
  readonly isUnrecorded: boolean;
}

/** The saving in the unrecorded step where it decides, otherwise as recorded. */
export function decisiveSaving(claim: ClaimReport): DecisiveSaving {
  const { unrecorded_gross_ns, unrecorded_low_ns, unrecorded_high_ns, unrecorded_share } = claim;
  const isUnrecorded = claim.decisive_step === 'unrecorded';
  const pick = (recorded: number, unrecorded: number | null): number =>
    isUnrecorded ? (unrecorded ?? recorded) : recorded;
  return {
    grossNs: pick(claim.gross_ns, unrecorded_gross_ns),
    lowNs: pick(claim.net_low_ns, unrecorded_low_ns),
    highNs: pick(claim.net_high_ns, unrecorded_high_ns),
    share: pick(claim.net_share, unrecorded_share),
    isUnrecorded,
  };
}

/** The saving in the other step, where it differs: `as recorded up to 4.0 ms`. */
export function otherSaving(claim: ClaimReport): string {
  const isUnrecorded = claim.decisive_step === 'unrecorded';
  const highNs = isUnrecorded ? claim.net_high_ns : claim.unrecorded_high_ns;
  if (!claim.steps_differ || highNs === null) return '';
  const where = isUnrecorded ? 'as recorded' : 'in a step without the profiler';
  return `${where} up to ${duration(highNs)}`;
}

/** Whether other findings count all the time of a claim, in both steps. */
export const isCovered = (claim: ClaimReport): boolean =>
  Math.max(claim.gross_ns, claim.unrecorded_gross_ns ?? 0) > 0 &&
  claim.net_high_ns <= 0 &&
  (claim.unrecorded_high_ns ?? 0) <= 0;
