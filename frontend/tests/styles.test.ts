import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const VIEWS = join(import.meta.dirname, '../src/views');

const sheetsOf = (view: string): string[] =>
  readdirSync(join(VIEWS, view), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.css'))
    .map((name) => readFileSync(join(VIEWS, view, name), 'utf8'));

/** The classes that a sheet's rules begin with: the first of each selector. */
function leadingClasses(sheet: string): string[] {
  const rules = sheet.replaceAll(/\/\*.*?\*\//gs, '').matchAll(/([^{}@]+)\{/g);
  const selectors = [...rules].flatMap(([, selector = '']) => selector.split(','));
  return selectors.flatMap((each) => /^\s*\.([\w-]+)/.exec(each)?.[1] ?? []);
}

/** Of the view's header, which has rules of its own: what a view adds holds in all. */
const SHARED = new Set(['view-actions']);

it('no two views have rules for the same class: those of a view stay when another is shown', () => {
  const viewsOf = new Map<string, Set<string>>();
  const folders = readdirSync(VIEWS, { withFileTypes: true }).filter((each) => each.isDirectory());
  for (const { name: view } of folders) {
    for (const name of sheetsOf(view).flatMap(leadingClasses))
      viewsOf.set(name, (viewsOf.get(name) ?? new Set()).add(view));
  }
  expect(viewsOf.size).toBeGreaterThan(300);
  const shared = [...viewsOf].filter(([name, views]) => views.size > 1 && !SHARED.has(name));
  expect(shared.map(([name, views]) => `${name}: ${[...views].join(', ')}`)).toEqual([]);
});
