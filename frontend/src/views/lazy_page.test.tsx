import { render, screen } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { ErrorBoundary } from '../widgets/failure';
import { lazyPage } from './lazy_page';

const Hello = ({ name }: { readonly name: string }) => <p>Hello {name}</p>;

it('a page is fetched when first shown', async () => {
  const load = vi.fn(() => Promise.resolve({ default: Hello }));
  const Page = lazyPage(load);
  expect(load).not.toHaveBeenCalled();
  const first = render(<Page name="A" />);
  expect(screen.getByRole('status', { name: 'Loading' })).toBeTruthy();
  expect(await screen.findByText('Hello A')).toBeTruthy();
  first.unmount();
  render(<Page name="B" />);
  expect(screen.getByText('Hello B')).toBeTruthy();
  expect(load).toHaveBeenCalledTimes(1);
});

it('a page that fails to load shows an error', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const Page = lazyPage<{ name: string }>(() => Promise.reject(new Error('The server is gone.')));
  render(
    <ErrorBoundary what="Timeline">
      <Page name="A" />
    </ErrorBoundary>,
  );
  expect(await screen.findByText(/The server is gone/)).toBeTruthy();
});
