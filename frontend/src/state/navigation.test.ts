import { expect, it } from 'vitest';
import { HOME } from './location';
import { moved } from './navigation';

const here = {
  ...HOME,
  view: 'kernels',
  run: 'r',
  worker: 'w',
  span: '2',
  group: 'launch',
  search: 'gemm',
  sort: { key: 'name', descending: false },
  step: 4,
};

it('leaves a view’s own state behind with the view, and takes the step along', () => {
  expect(moved(here, { view: 'operators', search: 'conv' })).toEqual({
    ...here,
    view: 'operators',
    search: 'conv',
    group: null,
    sort: null,
  });
});

it('keeps the search for another recording, and lets the step go', () => {
  expect(moved(here, { span: '1' })).toEqual({ ...here, span: '1', step: null });
  expect(moved(here, { run: 'other' })).toEqual({
    ...here,
    run: 'other',
    worker: null,
    span: null,
    step: null,
  });
});

it('lets nothing go where the recording that is named is the one that is shown', () => {
  expect(moved(here, { run: 'r', worker: 'w', span: '2', view: 'timeline' }).step).toBe(4);
});

it('opens a finding of another view’s recording in one move', () => {
  expect(moved(here, { view: 'advice', open: 'item-sync' })).toMatchObject({
    view: 'advice',
    open: 'item-sync',
    search: '',
  });
});

it('narrows to what was chosen last: a step or a time', () => {
  const time = { startNs: 5, endNs: 9 };
  expect(moved(here, { time })).toEqual({ ...here, step: null, time });
  expect(moved({ ...here, step: null, time }, { step: 3 })).toEqual({ ...here, step: 3 });
  expect(moved({ ...here, time, event: 7 }, { span: '1' })).toMatchObject({
    time: null,
    event: null,
  });
});

it('leaves track numbers and times behind with the recording, and keeps what says the same of any', () => {
  const options = { at: '5-9', pin: '3', hide: '4', tracks: 'stream', tab: 'search' };
  const timeline = { ...here, view: 'timeline', options };
  for (const patch of [{ run: 'other' }, { worker: 'v' }, { span: '1' }]) {
    expect(moved(timeline, patch).options).toEqual({ tracks: 'stream', tab: 'search' });
  }
  expect(moved(timeline, { step: 5 }).options).toEqual(options);
});

it('goes to a time of another recording where the link names one', () => {
  const timeline = { ...here, view: 'timeline', options: { at: '5-9', pin: '3' } };
  expect(moved(timeline, { worker: 'v', options: { at: '1-2' } }).options).toEqual({ at: '1-2' });
});
