import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EDITORS, editorAddress, faultOf, localPath, NO_EDITOR, tellEmbedder } from './editor';

afterEach(() => vi.unstubAllGlobals());

const [vscode, , pycharm] = EDITORS.map(({ template }) => ({ ...NO_EDITOR, template }));
const location = { path: '/home/train/my model/net.py', line: 12 };

describe('the address of a line', () => {
  it('is what each editor understands', () => {
    expect(editorAddress(location, vscode ?? NO_EDITOR)).toBe(
      'vscode://file/home/train/my%20model/net.py:12',
    );
    expect(editorAddress(location, pycharm ?? NO_EDITOR)).toBe(
      'pycharm://open?file=/home/train/my%20model/net.py&line=12',
    );
    expect(editorAddress({ path: 'C:\\work\\net.py', line: null }, vscode ?? NO_EDITOR)).toBe(
      'vscode://file/C:/work/net.py:1',
    );
  });

  it('is none where no editor was chosen', () => {
    expect(editorAddress(location, NO_EDITOR)).toBeNull();
  });

  it('never runs in the page, whatever the template is and whatever a trace calls a file', () => {
    const text = fc.string({ unit: 'grapheme' });
    fc.assert(
      fc.property(text, text, (template, path) => {
        const settings = { ...NO_EDITOR, template: `${template}{file}` };
        const address = editorAddress({ path, line: 1 }, settings);
        expect(address ?? '').not.toMatch(/^\s*(javascript|data|https?):/i);
      }),
    );
    for (const template of ['javascript:alert(`{file}`)', ' JavaScript:{file}', 'https://x/{file}'])
      expect(faultOf(template)).toContain('scheme');
    expect(faultOf('vscode://file/')).toContain('{file}');
    expect(faultOf('not an address {file}')).toContain('start with');
    expect(EDITORS.map(({ template }) => faultOf(template))).toEqual(EDITORS.map(() => null));
  });

  it('leads to no other machine and out of no folder', () => {
    const paths = [
      '//evil/share/x.py',
      '\\\\evil\\share\\x.py',
      '../../x.py',
      '/a/../../x.py',
      '/a\n/x.py',
    ];
    for (const path of paths) {
      expect(editorAddress({ path, line: 1 }, vscode ?? NO_EDITOR)).toBeNull();
    }
    const root = { ...NO_EDITOR, template: vscode?.template ?? '', to: '/home/me' };
    expect(editorAddress({ path: '../x.py', line: 1 }, root)).toBeNull();
    expect(editorAddress({ path: 'a..b/x..py', line: 1 }, root)).toContain('/a..b/x..py');
  });

  it('keeps a path’s own % and # within the path', () => {
    expect(editorAddress({ path: '/a/50%#b?.py', line: 3 }, vscode ?? NO_EDITOR)).toBe(
      'vscode://file/a/50%25%23b%3F.py:3',
    );
  });
});

it('finds a file of another machine, and one whose path was cut', () => {
  const moved = { ...NO_EDITOR, from: '/opt/job/', to: '/home/me/' };
  expect(localPath('/opt/job/net.py', moved)).toBe('/home/me/net.py');
  expect(localPath('/usr/lib/x.py', moved)).toBe('/usr/lib/x.py');
  const root = { ...NO_EDITOR, to: '/site-packages/' };
  expect(localPath('torch/nn/x.py', root)).toBe('/site-packages/torch/nn/x.py');
  expect(localPath('/usr/lib/x.py', root)).toBe('/usr/lib/x.py');
});

describe('VS Code’s extension', () => {
  it('is told the file and the line, in the words that torch-tb-profiler used', () => {
    const postMessage = vi.fn();
    vi.stubGlobal('parent', { parent: { postMessage } });
    expect(tellEmbedder(location)).toBe(true);
    expect(postMessage).toHaveBeenCalledWith({ filename: location.path, line: 12 }, '*');
  });

  it('is not there stand-alone, nor in TensorBoard’s own page', () => {
    expect(tellEmbedder(location)).toBe(false);
    const tensorboard = { postMessage: vi.fn(), parent: {} };
    tensorboard.parent = tensorboard;
    vi.stubGlobal('parent', tensorboard);
    expect(tellEmbedder(location)).toBe(false);
    expect(tensorboard.postMessage).not.toHaveBeenCalled();
  });
});
