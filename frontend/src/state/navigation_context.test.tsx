import { act, render, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import { formatHash } from './location';
import { memoryStore, type Navigation, NavigationProvider, useNavigation } from './navigation';

function navigationOf(start: Parameters<typeof memoryStore>[0]): () => Navigation {
  const store = { ...memoryStore(start), href: formatHash };
  let found: Navigation | null = null;
  function Reader() {
    found = useNavigation();
    return <p>{found.location.view}</p>;
  }
  render(
    <NavigationProvider store={store}>
      <Reader />
    </NavigationProvider>,
  );
  return () => {
    if (!found) throw new Error('the reader was rendered');
    return found;
  };
}

it('gives the address of all that is shown: naming the recording lets nothing of it go', () => {
  const navigation = navigationOf({
    view: 'memory',
    step: 3,
    event: 17,
    search: 'gemm',
    options: { tab: 'leaks' },
  });
  expect(navigation().addressOf({ run: 'r', worker: 'w', span: '1' })).toBe(
    '#view=memory&run=r&worker=w&span=1&search=gemm&step=3&event=17&o.tab=leaks',
  );
});

it('leads back to each view as it was left, and from a view to its usual state', () => {
  const navigation = navigationOf({ view: 'kernels' });
  act(() => navigation().go({ search: 'gemm', options: { unit: 'share' } }));
  act(() => navigation().go({ view: 'operators' }));
  expect(screen.getByText('operators')).toBeTruthy();
  expect(navigation().location.search).toBe('');
  act(() => navigation().go(navigation().backTo('kernels')));
  expect(navigation().location).toMatchObject({ search: 'gemm', options: { unit: 'share' } });
  act(() => navigation().go(navigation().backTo('kernels')));
  expect(navigation().location).toMatchObject({ search: '', options: {} });
});
