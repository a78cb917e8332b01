import { act, fireEvent, render, screen } from '@testing-library/react';
import { type ReactNode, useState } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MainContent } from './main_content';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

let finishLoading: () => void = () => undefined;

/** A view whose content appears later. */
function Advice(): ReactNode {
  const [isLoaded, setLoaded] = useState(false);
  finishLoading = () => setLoaded(true);
  if (!isLoaded) return <p>Loading</p>;
  return (
    <>
      <details>
        <summary>Passed checks</summary>
      </details>
      <details>
        <summary>Method</summary>
      </details>
      <div className="grid" data-testid="grid" />
    </>
  );
}

const page = (subject: string, state = ''): ReactNode => (
  <MainContent subject={subject} state={state}>
    {subject.startsWith('advice') ? <Advice key={subject} /> : <p>Other view</p>}
  </MainContent>
);

const load = (): Promise<void> =>
  act(async () => {
    finishLoading();
    await vi.advanceTimersByTimeAsync(1);
  });

/** A part whose events do not reach the page. */
function keeper(): HTMLElement {
  const part = screen.getByRole('main').firstElementChild as HTMLElement;
  part.addEventListener('pointerdown', (event) => event.stopPropagation());
  return part;
}

const fold = (name: string): HTMLDetailsElement =>
  screen.getByText(name).closest('details') as HTMLDetailsElement;

async function leftAdvice(): Promise<ReturnType<typeof render>> {
  const shown = render(page('advice a'));
  await act(() => import('../state/page_position'));
  await load();
  fold('Method').open = true;
  screen.getByRole('main').scrollTop = 640;
  screen.getByTestId('grid').scrollTop = 90;
  shown.rerender(page('kernels a'));
  return shown;
}

describe('a view that is opened again', () => {
  it('has its scroll positions and unfolded parts, once its content is loaded', async () => {
    const { rerender } = await leftAdvice();
    expect(screen.getByRole('main').scrollTop).toBe(0);
    rerender(page('advice a'));
    await load();
    expect(screen.getByRole('main').scrollTop).toBe(640);
    expect(screen.getByTestId('grid').scrollTop).toBe(90);
    expect([fold('Method').open, fold('Passed checks').open]).toEqual([true, false]);
  });

  it('begins at its top for another run, or in another state', async () => {
    const { rerender } = await leftAdvice();
    for (const next of [page('advice b'), page('advice a', 'search')]) {
      rerender(page('kernels a'));
      rerender(next);
      await load();
      expect(screen.getByRole('main').scrollTop).toBe(0);
      expect(fold('Method').open).toBe(false);
    }
  });

  it.each([
    ['scrolls', () => fireEvent.wheel(screen.getByRole('main'))],
    ['clicks in a part that keeps the event', () => fireEvent.pointerDown(keeper())],
    ['presses a key outside of the view', () => fireEvent.keyDown(document.body, { key: 'End' })],
  ])('is moved no more once the user %s', async (_, act) => {
    const { rerender } = await leftAdvice();
    rerender(page('advice a'));
    act();
    screen.getByRole('main').scrollTop = 10;
    await load();
    expect(screen.getByRole('main').scrollTop).toBe(10);
    expect(fold('Method').open).toBe(false);
  });

  it('is moved no more once its state changes', async () => {
    const { rerender } = await leftAdvice();
    rerender(page('advice a'));
    rerender(page('advice a', 'search'));
    screen.getByRole('main').scrollTop = 10;
    await load();
    expect(screen.getByRole('main').scrollTop).toBe(10);
  });

  it('looks for its parts ten times a second at most', async () => {
    const { rerender } = await leftAdvice();
    rerender(page('advice a'));
    await load();
    const main = screen.getByRole('main');
    const walk = vi.spyOn(main, 'querySelectorAll');
    for (let change = 0; change < 50; change += 1) {
      screen.getByTestId('grid').append(document.createElement('i'));
      await vi.advanceTimersByTimeAsync(10);
    }
    main.scrollTop = 0; // as content that is replaced
    screen.getByTestId('grid').append(document.createElement('i'));
    await vi.advanceTimersByTimeAsync(100);
    expect(main.scrollTop).toBe(640);
    expect(walk.mock.calls.filter(([selector]) => selector === '*').length).toBeLessThan(8);
  });
});
