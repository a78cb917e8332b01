import { describe, expect, it } from 'vitest';
import { SHOWN_IN } from '../core/health';
import { views, viewsByFolder } from '.';

const files = Object.keys(import.meta.glob('./*/*'));

describe('views', () => {
  it.each(Object.entries(viewsByFolder))('%s is called as its folder is', (folder, view) => {
    expect(view.id).toBe(folder);
  });

  it.each(Object.keys(viewsByFolder))('%s has a fixture and a test', (folder) => {
    expect(files).toContain(`./${folder}/fixture.json`);
    expect(files).toContain(`./${folder}/${folder}.test.tsx`);
  });

  it.each(views)('$id rests on what damage is told of, and its keys say what they do', (view) => {
    expect(Object.keys(SHOWN_IN)).toEqual(expect.arrayContaining([...view.restsOn]));
    for (const [key, meaning] of view.keys ?? []) {
      expect(key.trim()).toBe(key);
      expect(meaning.length).toBeGreaterThan(3);
    }
  });

  it('that damage is told of are there', () => {
    const ids = views.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(Object.values(SHOWN_IN)));
  });

  it('take no letter that leads elsewhere', () => {
    for (const { key } of views) expect(key).toMatch(/^[a-z]$/);
  });

  it('come in their order, each with a key of its own', () => {
    const orders = views.map((view) => view.order);
    expect(new Set(orders).size).toBe(views.length);
    expect(orders).toEqual([...orders].sort((a, b) => a - b));
    expect(new Set(views.map((view) => view.key)).size).toBe(views.length);
  });
});
