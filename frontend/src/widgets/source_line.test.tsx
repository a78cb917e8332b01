import { act, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, it, vi } from 'vitest';
import { editorStore, NO_EDITOR } from '../host/editor';
import { pathEnd, SourceLine } from './source_line';
import { clearToasts, Toasts } from './toast';

afterEach(() => {
  act(clearToasts);
  editorStore.choose(NO_EDITOR);
});

const line = <SourceLine path="/home/train/models/net.py" line={41} of="forward" />;

it('shows the end of a path, and all of a short one', () => {
  expect(pathEnd('/home/train/models/net.py', 2)).toBe('…/models/net.py');
  expect(pathEnd('models/net.py', 2)).toBe('models/net.py');
  expect(pathEnd('C:\\a\\b\\c\\net.py', 1)).toBe('…/net.py');
});

it('is copied where no editor was chosen, and says so', async () => {
  const user = userEvent.setup();
  render(
    <>
      {line}
      <Toasts />
    </>,
  );
  await user.click(screen.getByRole('button', { name: /net\.py\s*:41\s*forward/ }));
  expect(await navigator.clipboard.readText()).toBe('/home/train/models/net.py:41');
  expect(await screen.findByText('Copied /home/train/models/net.py:41')).toBeTruthy();
});

it('is a link into the editor that was chosen, and the row around it is not opened', async () => {
  const opened = vi.fn();
  act(() => editorStore.choose({ ...NO_EDITOR, template: 'vscode://file/{file}:{line}' }));
  // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: a row as tables have them
  render(<div onClick={opened}>{line}</div>);
  const link = screen.getByRole('link');
  expect(link.getAttribute('href')).toBe('vscode://file/home/train/models/net.py:41');
  link.addEventListener('click', (event) => event.preventDefault());
  await userEvent.click(link);
  expect(opened).not.toHaveBeenCalled();
});
