/** What a fix takes, and what it may change beside the time, in words. */
import type { Outcome } from '../../api/types.gen';

export const EFFORT: Readonly<Record<NonNullable<Outcome['effort']>, string>> = {
  flag: 'an argument or a line',
  hour: 'an hour, of somebody who knows the code',
  day: 'a day or more',
};
export const RISK: Readonly<Record<NonNullable<Outcome['risk']>, string>> = {
  none: 'none: the same results in less time',
  numerics: 'results change a little: check that the model still learns',
  memory: 'needs more memory',
  behaviour: 'may change what the program does',
};
