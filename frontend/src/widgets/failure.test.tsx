import { screen } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { renderInPage } from '../../tests/render';
import { RequestError } from '../api/client';
import { ErrorBoundary, Failure } from './failure';

const refused = (code: string, hint: string): RequestError =>
  new RequestError(422, code, 'no memory was recorded', hint);

it('shows what records the missing thing as code, and no fault', () => {
  const error = refused('not-recorded', 'profile(profile_memory=True)');
  const { container } = renderInPage(<Failure error={error} what="Memory" />);
  expect(screen.getByText('Memory: no data')).toBeTruthy();
  expect(screen.getByText('No memory was recorded.')).toBeTruthy();
  expect(container.querySelector('pre')?.textContent).toContain('profile(profile_memory=True)');
  expect(container.querySelector('.empty-bad')).toBeNull();
});

it('shows a remedy that is no code as a sentence', () => {
  renderInPage(<Failure error={refused('not-recorded', 'record all ranks')} what="Ranks" />);
  expect(screen.getByText('Record all ranks.')).toBeTruthy();
});

it('shows everything else as what went wrong', () => {
  const error = refused('unreadable', 'Copy it again.');
  const { container } = renderInPage(<Failure error={error} what="Memory" />);
  expect(screen.getByText('Memory could not be shown')).toBeTruthy();
  expect(container.querySelector('.empty-bad')).not.toBeNull();
});

function Broken({ message }: { readonly message: string }): never {
  throw new Error(message);
}

const broken = (message: string) => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  return renderInPage(
    <ErrorBoundary what="Memory">
      <Broken message={message} />
    </ErrorBoundary>,
  );
};

it('asks to report a fault of ours, with the details to copy', () => {
  broken('x is undefined');
  expect(screen.getByText('X is undefined.')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Copy details' })).toBeTruthy();
});

it.each([
  'Failed to fetch dynamically imported module: http://host/assets/page-1a2b.js',
  'error loading dynamically imported module: http://host/assets/page-1a2b.js',
  'Importing a module script failed.',
])('does not call a part that the server no longer has a fault: %s', (message) => {
  broken(message);
  expect(screen.getByText('Memory could not be loaded')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Reload the page' })).toBeTruthy();
  expect(screen.queryByText(/please report/)).toBeNull();
});
