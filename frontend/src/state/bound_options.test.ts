import { expect, it } from 'vitest';
import { carried } from './bound_options';

const left = { run: 'r', worker: 'w', span: '1' };

it('rows of one tree of modules are not rows of another', () => {
  const options = { row: '7', root: '2', turned: '1.4', width: 'device' };
  const modules = { ...left, view: 'modules', options };
  expect(carried(modules, { ...left, worker: 'v' })).toEqual({ width: 'device' });
  expect(carried(modules, left)).toBe(options);
});

it('rows that a table finds by what is in them hold in every recording', () => {
  const operators = { ...left, view: 'operators', options: { row: 'aten::mm' } };
  expect(carried(operators, { ...left, run: 'other' })).toEqual({ row: 'aten::mm' });
});

it('what is of all ranks stays while one after the other is chosen, but not in another run', () => {
  const options = { at: 'rank0:123', lines: '3-9', tab: 'collectives' };
  const distributed = { ...left, view: 'distributed', options };
  expect(carried(distributed, { ...left, worker: 'v' })).toBe(options);
  expect(carried(distributed, { ...left, span: '2' })).toEqual({ tab: 'collectives' });
  expect(carried(distributed, { ...left, run: 'other' })).toEqual({ tab: 'collectives' });
});
