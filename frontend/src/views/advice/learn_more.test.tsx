import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { fakeApi } from '../../../tests/views';
import { LearnMore } from './learn_more';

const TEXT = `# acme/slow

**It is slow.**

| | |
|---|---|
| Category | input <b>pipeline</b> |

## What to change

Set \`num_workers\`, see <https://pytorch.org/docs>.

\`\`\`python
loader = DataLoader(dataset, num_workers=4)
\`\`\`

- It needs **more** memory.

| option | default |
|---|---:|
| \`least_share\` | 0.01 |
`;
const path = 'rules/acme%2Fslow';
const api = fakeApi({ [path]: { schema: 1, rule: 'acme/slow', text: TEXT } });

const open = (): Promise<void> => userEvent.click(screen.getByText('Learn more about this check'));

it('the rule’s page is fetched only when expanded', async () => {
  const { container } = renderInPage(<LearnMore rule="acme/slow" />);
  expect(api.requests).toEqual([]);
  await open();
  expect(await screen.findByRole('heading', { name: 'What to change' })).toBeTruthy();
  expect(api.requests).toEqual([path]);
  expect(screen.queryByText('It is slow.')).toBeNull();
  expect(screen.getByRole('rowheader', { name: 'Category' })).toBeTruthy();
  expect(screen.getByRole('columnheader', { name: 'option' })).toBeTruthy();
  expect(screen.getByRole('listitem').textContent).toBe('It needs more memory.');
  expect(container.querySelector('pre')?.textContent).toBe(
    'loader = DataLoader(dataset, num_workers=4)',
  );
  const link = screen.getByRole('link', { name: 'pytorch.org/docs' });
  expect(link.getAttribute('href')).toBe('https://pytorch.org/docs');
});

it('the rule’s page is never parsed as HTML', async () => {
  const { container } = renderInPage(<LearnMore rule="acme/slow" />);
  await open();
  expect(await screen.findByText('input <b>pipeline</b>')).toBeTruthy();
  expect(container.querySelector('b')).toBeNull();
});

it('a rule unknown to the server shows an error', async () => {
  api.responses[path] = { code: 'not-found', message: 'There is no rule acme/slow.', hint: '' };
  renderInPage(<LearnMore rule="acme/slow" />);
  await open();
  expect(await screen.findByText(/There is no rule acme\/slow/)).toBeTruthy();
});
