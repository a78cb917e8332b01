import { describe, expect, it } from 'vitest';
import type { JobReport, JobSaving } from '../api/types.gen';
import { dailySaving, hoursWords, moneyWords, parsedNumber, termsOf } from './job_saving';

const saving: JobSaving = {
  low_share: 0.1,
  high_share: 0.25,
  low_gpu_hours: null,
  high_gpu_hours: null,
  low_money: null,
  high_money: null,
};
const job = { gpu_count: 1024, gpu_hour_price: 2 } as JobReport;

describe('what a job could save in a day', () => {
  it('is its share of all devices for 24 hours, and their price', () => {
    const daily = dailySaving(saving, { deviceCount: 1024, price: 2.5 });
    expect(daily).toEqual({
      lowHours: 0.1 * 1024 * 24,
      highHours: 6144,
      lowMoney: 0.1 * 1024 * 24 * 2.5,
      highMoney: 15_360,
    });
    expect(daily && [hoursWords(daily), moneyWords(daily)]).toEqual([
      '2,458–6,144 GPU-hours',
      '6,144–15,360',
    ]);
  });

  it('is not told where nothing tells how many devices there are, nor money without a price', () => {
    expect(dailySaving(saving, { deviceCount: null, price: 2 })).toBeNull();
    const daily = dailySaving({ ...saving, high_share: 0.1 }, { deviceCount: 1, price: null });
    expect(daily && [hoursWords(daily), moneyWords(daily)]).toEqual(['2.40 GPU-hours', '']);
  });

  it('rests on what the user says before what the recordings tell', () => {
    expect(termsOf(job, { deviceCount: null, price: null })).toEqual({
      deviceCount: 1024,
      price: 2,
    });
    expect(termsOf(job, { deviceCount: 8, price: 3 })).toEqual({ deviceCount: 8, price: 3 });
    expect(termsOf(null, { deviceCount: null, price: null })).toEqual({
      deviceCount: null,
      price: null,
    });
  });
});

it.each([
  ['2.5', 2.5],
  [' 1,024 ', 1024],
  ['2,5', 2.5],
  ['0', null],
  ['-3', null],
  ['many', null],
  ['', null],
])('a number is read as a person writes it: %j', (text, value) => {
  expect(parsedNumber(text)).toBe(value);
});
