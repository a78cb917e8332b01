/** The saving of a finding that counts: in the decisive step, as severity and order use it. */
import type { ClaimReport } from '../api/types.gen';
import { durationRange, shareRange } from './format';

export interface DecisiveSaving {
  /** The least and the most that the finding's fix alone saves. */
  readonly lowNs: number;
  readonly highNs: number;
  /** `lowNs` and `highNs` as fractions of the step. */
  readonly lowShare: number;
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
  const lowNs = pick(claim.low_ns, claim.unrecorded_low_ns);
  const highNs = pick(claim.high_ns, claim.unrecorded_high_ns);
  const share = pick(claim.share, claim.unrecorded_share);
  return {
    lowNs,
    highNs,
    lowShare: highNs > 0 ? (lowNs / highNs) * share : 0,
    share,
    netHighNs: pick(claim.net_high_ns, claim.unrecorded_net_high_ns),
    isUnrecorded,
  };
}

/** The saving as a part of its step: `24.1–72.6 % of the step`. */
export function shareWords(saving: DecisiveSaving, hasSteps: boolean): string {
  const ofStep = saving.isUnrecorded ? 'of the unrecorded step' : 'of the step';
  return `${shareRange(saving.lowShare, saving.share)} ${hasSteps ? ofStep : 'of the window'}`;
}

/** The saving as a time: `2.64–5.02 ms per step`. */
export function timeWords(
  { lowNs, highNs, isUnrecorded }: DecisiveSaving,
  hasSteps: boolean,
): string {
  const ofStep = isUnrecorded ? 'per unrecorded step' : 'per step';
  return `${durationRange(lowNs, highNs)} ${hasSteps ? ofStep : 'in total'}`;
}

/** The saving in the other step, where it differs: `as recorded 1.20–4.00 ms`. */
export function otherSaving(claim: ClaimReport): string {
  const isUnrecorded = claim.decisive_step === 'unrecorded';
  const highNs = isUnrecorded ? claim.high_ns : claim.unrecorded_high_ns;
  const lowNs = isUnrecorded ? claim.low_ns : claim.unrecorded_low_ns;
  if (!claim.steps_differ || highNs === null) return '';
  const where = isUnrecorded ? 'as recorded' : 'in a step without the profiler';
  return `${where} ${durationRange(lowNs ?? 0, highNs)}`;
}

/** Whether other findings count all the time of a claim, in both steps. */
export const isCovered = (claim: ClaimReport): boolean =>
  Math.max(claim.high_ns, claim.unrecorded_high_ns ?? 0) > 0 &&
  claim.net_high_ns <= 0 &&
  (claim.unrecorded_net_high_ns ?? 0) <= 0;
