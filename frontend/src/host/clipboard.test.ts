import { afterEach, expect, it, vi } from 'vitest';
import { copyText } from './clipboard';

afterEach(() => vi.unstubAllGlobals());

/** Insecure contexts have no clipboard; the document still copies what is selected. */
function withoutClipboard(): { copied: string[] } {
  const copied: string[] = [];
  vi.stubGlobal('navigator', {});
  document.execCommand = () => {
    const area = document.activeElement ?? document.querySelector('textarea');
    copied.push(
      (area as HTMLTextAreaElement).value || (document.querySelector('textarea')?.value ?? ''),
    );
    return true;
  };
  return { copied };
}

it('uses the clipboard where there is one', async () => {
  const writeText = vi.fn(async () => undefined);
  vi.stubGlobal('navigator', { clipboard: { writeText } });
  expect(await copyText('x')).toBe(true);
  expect(writeText).toHaveBeenCalledWith('x');
});

it('copies on a page without it, and leaves nothing behind', async () => {
  const { copied } = withoutClipboard();
  expect(await copyText('a\nb')).toBe(true);
  expect(copied).toEqual(['a\nb']);
  expect(document.querySelector('textarea')).toBeNull();
});

it('says where nothing can copy', async () => {
  withoutClipboard();
  document.execCommand = () => false;
  expect(await copyText('x')).toBe(false);
});
