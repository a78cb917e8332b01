/**
 * The daily saving of a job with many devices, computed as on the server, with the user's number
 * of devices and price. Pure.
 */
import type { JobReport, JobSaving } from '../api/types.gen';
import { count, significant } from './format';

const HOURS_A_DAY = 24;

/** The user's terms; null: not entered. */
export interface JobTerms {
  readonly deviceCount: number | null;
  /** Price of a device hour. */
  readonly price: number | null;
}

export const termsOf = (job: JobReport | null, entered: JobTerms): JobTerms => ({
  deviceCount: entered.deviceCount ?? job?.gpu_count ?? null,
  price: entered.price ?? job?.gpu_hour_price ?? null,
});

export interface DailySaving {
  readonly lowHours: number;
  readonly highHours: number;
  /** Null without a price. */
  readonly lowMoney: number | null;
  readonly highMoney: number | null;
}

/** Device hours and cost per day. */
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

/** Empty without a price; the currency is the user's. */
export const moneyWords = ({ lowMoney, highMoney }: DailySaving): string =>
  lowMoney === null || highMoney === null ? '' : range(lowMoney, highMoney);

/** A positive number typed by the user; null for other text. */
export function parsedNumber(text: string): number | null {
  const value = Number(
    text
      .trim()
      .replace(/[,\s](?=\d{3}\b)/g, '')
      .replace(',', '.'),
  );
  return text.trim() !== '' && Number.isFinite(value) && value > 0 ? value : null;
}
