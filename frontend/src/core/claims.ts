/** The saving of a finding that counts: in the decisive step, as severity and order use it. */
import type { ClaimReport } from '../api/types.gen';
import { duration } from './format';

export interface DecisiveSaving {
  /** The least and the most that the finding's fix alone saves. */
  readonly lowNs: number;
  readonly highNs: number;
  /** `highNs` as a fraction of the step. */
  readonly share: number;
  /** The most of it that no other finding counts. */
  readonly netHighNs: number;
  readonly isUnrecorded: boolean;
}

/** The saving in the unrecorded step where it decides, otherwise as recorded. */
export function decisiveSaving(claim: ClaimReport): DecisiveSaving {
  const isUnrecorded = claim.decisive_step === 'unrecorded';
  const pick = (recorded: number, unrecorded: number | null): number =>
    isUnrecorded ? (unrecorded ?? recorded) : recorded;
  return {
    lowNs: pick(claim.low_ns, claim.unrecorded_low_ns),
    highNs: pick(claim.high_ns, claim.unrecorded_high_ns),
    share: pick(claim.share, claim.unrecorded_share),
    netHighNs: pick(claim.net_high_ns, claim.unrecorded_net_high_ns),
    isUnrecorded,
  };
}

/** The saving in the other step, where it differs: `as recorded up to 4.0 ms`. */
export function otherSaving(claim: ClaimReport): string {
  const isUnrecorded = claim.decisive_step === 'unrecorded';
  const highNs = isUnrecorded ? claim.high_ns : claim.unrecorded_high_ns;
  if (!claim.steps_differ || highNs === null) return '';
  const where = isUnrecorded ? 'as recorded' : 'in a step without the profiler';
  return `${where} up to ${duration(highNs)}`;
}

/** Whether other findings count all the time of a claim, in both steps. */
export const isCovered = (claim: ClaimReport): boolean =>
  Math.max(claim.high_ns, claim.unrecorded_high_ns ?? 0) > 0 &&
  claim.net_high_ns <= 0 &&
  (claim.unrecorded_net_high_ns ?? 0) <= 0;
