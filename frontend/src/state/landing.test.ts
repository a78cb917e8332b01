import { expect, it } from 'vitest';
import { listed, runOf } from '../../tests/states';
import { landingView } from './landing';

const [one, other] = [runOf('one', 'ready', []), runOf('other', 'queued', [])];

it('is the list of several runs, and the advice on a single one', () => {
  expect(landingView(listed(one, other))).toBe('runs');
  expect(landingView(listed(one))).toBe('advice');
});

it('is undecided while another run may still be listed', () => {
  expect(landingView({ ...listed(one), scanning: true })).toBeNull();
  expect(landingView({ ...listed(one, other), scanning: true })).toBe('runs');
  expect(landingView(listed())).toBeNull();
});
