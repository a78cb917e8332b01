import { describe, expect, it } from 'vitest';
import { SHOWN_IN } from '../core/health';
import { views, viewsByFolder } from '.';

const files = Object.keys(import.meta.glob('./*/*'));

describe('views', () => {
  it.each(Object.entries(viewsByFolder))('%s has the name of its folder', (folder, view) => {
    expect(view.id).toBe(folder);
  });

  it.each(Object.keys(viewsByFolder))('%s has a fixture and a test', (folder) => {
    expect(files).toContain(`./${folder}/fixture.json`);
    expect(files).toContain(`./${folder}/${folder}.test.tsx`);
  });

  it.each(views)(
    '$id names figures that health reports as affected, and describes its keys',
    (view) => {
      expect(Object.keys(SHOWN_IN)).toEqual(expect.arrayContaining([...view.dependsOn]));
      for (const [key, meaning] of view.keys ?? []) {
        expect(key.trim()).toBe(key);
        expect(meaning.length).toBeGreaterThan(3);
      }
    },
  );

  it('that health links to exist', () => {
    const ids = views.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(Object.values(SHOWN_IN)));
  });

  it('have letters as keys', () => {
    for (const { key } of views) expect(key).toMatch(/^[a-z]$/);
  });

  it('are in order, each with a unique key', () => {
    const orders = views.map((view) => view.order);
    expect(new Set(orders).size).toBe(views.length);
    expect(orders).toEqual([...orders].sort((a, b) => a - b));
    expect(new Set(views.map((view) => view.key)).size).toBe(views.length);
  });
});
