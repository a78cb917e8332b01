import { describe, expect, it } from 'vitest';
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

  it('come in their order, each with a key of its own', () => {
    expect(views.map((view) => view.id)).toEqual([
      'advice',
      'overview',
      'operators',
      'kernels',
      'health',
    ]);
    expect(new Set(views.map((view) => view.key)).size).toBe(views.length);
  });
});
