// @vitest-environment node
/** The page as it is built: its size, and what its content policy and TensorBoard ask of it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const frontend = fileURLToPath(new URL('..', import.meta.url));
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'stepscope-build-'));
  const vite = join(frontend, 'node_modules/vite/bin/vite.js');
  execFileSync(process.execPath, [vite, 'build', '--outDir', folder, '--emptyOutDir'], {
    cwd: frontend,
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: 'pipe',
  });
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const text = (name: string): string => readFileSync(join(folder, name), 'utf8');
const files = (): string[] => readdirSync(folder, { recursive: true, encoding: 'utf8' });
/** Ours: speedscope is a program of its own, which does without what the policy forbids. */
const scripts = (): string[] =>
  files().filter((name) => name.endsWith('.js') && !name.startsWith('speedscope'));

describe('the built page', () => {
  it('keeps to its budget', () => {
    const words = execFileSync(process.execPath, [join(frontend, 'scripts/size.mjs'), folder], {
      encoding: 'utf8',
    });
    expect(words).not.toContain('TOO LARGE');
    expect(words).toMatch(/first view: [\d.]+ kB/);
  });

  it('has the entry that TensorBoard imports, under its exact name', () => {
    expect(text('index.js')).toMatch(/export\{\w+ as render\}/);
    expect(text('index.js')).toContain('index.html');
  });

  it('asks for everything relative to itself, and for no inline script', () => {
    const html = text('index.html');
    const asked = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map((match) => match[1]);
    expect(asked.length).toBeGreaterThan(2);
    expect(asked.filter((url) => !url?.startsWith('./'))).toEqual([]);
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/);
    expect(html).not.toMatch(/\son\w+=/);
  });

  it('holds speedscope, with its licence and that of its font', () => {
    const html = text('speedscope/index.html');
    const asked = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(
      (match) => `speedscope/${match[1]}`,
    );
    expect(asked.length).toBeGreaterThan(2);
    expect(files()).toEqual(expect.arrayContaining(asked));
    expect(text('speedscope/LICENSE.txt')).toContain('Jamie Wong');
    expect(text('speedscope/source-code-pro.LICENSE.txt')).toContain('SIL OPEN FONT LICENSE');
    expect(files().filter((name) => /woff2$|wasm$|perf-vertx/.test(name))).toHaveLength(1);
  });

  it('evaluates no text as code', () => {
    expect(scripts().length).toBeGreaterThan(4);
    for (const name of scripts()) {
      expect(text(name), name).not.toMatch(/\beval\(|new Function\(|\bFunction\(["'`]/);
    }
  });
});

describe('the page for shared files', () => {
  it('is one script and one style sheet, which load nothing and evaluate no text', () => {
    const target = join(folder, 'one');
    const vite = join(frontend, 'node_modules/vite/bin/vite.js');
    const config = ['--config', 'vite.shared.config.ts', '--outDir', target];
    execFileSync(process.execPath, [vite, 'build', ...config], {
      cwd: frontend,
      env: { ...process.env, NODE_ENV: 'production' },
      stdio: 'pipe',
    });
    expect(readdirSync(target).sort()).toEqual(['page.css', 'page.js']);
    const script = text('one/page.js');
    expect(script).not.toMatch(/\bimport\(|\bimport["'{]|\beval\(|new Function\(/);
    expect(text('one/page.css')).not.toMatch(/@import|url\((?!["']?(?:data:|#))/);
    expect(script).toContain('Shared file');
    expect(scripts().filter((name) => text(name).includes('stepscope-file'))).toEqual([
      'one/page.js',
    ]);
  });
});
