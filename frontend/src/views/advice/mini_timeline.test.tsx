import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { outcome } from '../../../tests/samples';
import { fakeApi } from '../../../tests/views';
import type { Outcome } from '../../api/types.gen';
import advice from './fixture.json';
import recorded from './fixtures/timeline-excerpt.json';
import { MiniTimeline } from './mini_timeline';

const OUTCOME = advice.outcomes.find(
  ({ rule, status }) => rule === 'dataloader-bound' && status === 'found',
) as unknown as Outcome;
const api = fakeApi({ 'timeline/excerpt': recorded });

describe('the picture of a finding', () => {
  it('names the event, its row and the claimed time, and links to the timeline', async () => {
    const { store } = renderInPage(<MiniTimeline outcome={OUTCOME} />);
    const picture = await screen.findByRole('img');
    const text = picture.getAttribute('aria-label');
    expect(text).toContain('__next__, 24.6 ms, on Main thread, level 2.');
    expect(text).toContain('Claimed: 23.0 ms.');
    expect(screen.getByRole('heading').textContent).toContain('Around the worst event');
    await userEvent.click(picture);
    expect(store.current()).toMatchObject({ view: 'timeline', event: 19 });
  });

  it('shows the longest claimed time where there is no event', async () => {
    renderInPage(<MiniTimeline outcome={{ ...OUTCOME, events: [] }} />);
    expect((await screen.findByRole('heading')).textContent).toContain(
      'Longest claimed time23.0 ms at 1.564 ms',
    );
  });

  it('is absent, and not requested, without an event and without claimed time', () => {
    const { container } = renderInPage(<MiniTimeline outcome={outcome({ rule: 'setting' })} />);
    expect(container.querySelector('section')).toBeNull();
    expect(api.requests).toEqual([]);
  });
});
