/** What a job of many devices could save in a day: the same reckoning as the server's, with what the user says of it. Pure. */
import type { JobReport, JobSaving } from '../api/types.gen';
import { count, significant } from './format';

const HOURS_A_DAY = 24;

/** What the user knows of the job; null: not said. */
export interface JobTerms {
  readonly deviceCount: number | null;
  /** Of one device for an hour, in whatever currency. */
  readonly price: number | null;
}

export const termsOf = (job: JobReport | null, said: JobTerms): JobTerms => ({
  deviceCount: said.deviceCount ?? job?.gpu_count ?? null,
  price: said.price ?? job?.gpu_hour_price ?? null,
});

export interface DailySaving {
  readonly lowHours: number;
  readonly highHours: number;
  /** Null where no price is known. */
  readonly lowMoney: number | null;
  readonly highMoney: number | null;
}

/** A share of all devices for a day, and what that costs. */
export function dailySaving(
  saving: JobSaving,
  { deviceCount, price }: JobTerms,
): DailySaving | null {
  if (deviceCount === null) return null;
  const [lowHours, highHours] = [saving.low_share, saving.high_share].map(
    (share) => share * deviceCount * HOURS_A_DAY,
  ) as [number, number];
  return {
    lowHours,
    highHours,
    lowMoney: price === null ? null : lowHours * price,
    highMoney: price === null ? null : highHours * price,
  };
}

const number = (value: number): string =>
  value >= 1000 ? count(Math.round(value)) : significant(value);

function range(low: number, high: number): string {
  const [least, most] = [number(low), number(high)];
  return least === most ? most : `${least}–${most}`;
}

export const hoursWords = ({ lowHours, highHours }: DailySaving): string =>
  `${range(lowHours, highHours)} GPU-hours`;

/** Empty where no price is known; the currency is the user's own. */
export const moneyWords = ({ lowMoney, highMoney }: DailySaving): string =>
  lowMoney === null || highMoney === null ? '' : range(lowMoney, highMoney);

/** A number as a person writes it; null where it is none above nothing. */
export function parsedNumber(text: string): number | null {
  const value = Number(
    text
      .trim()
      .replace(/[,\s](?=\d{3}\b)/g, '')
      .replace(',', '.'),
  );
  return text.trim() !== '' && Number.isFinite(value) && value > 0 ? value : null;
}
