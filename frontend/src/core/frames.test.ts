import { expect, it } from 'vitest';
import { framesOf, stackFrame } from './frames';

it('takes a call apart as torch’s tracer writes it, and as its memory snapshots do', () => {
  expect(stackFrame('my model/train.py(12): <module>')).toEqual({
    path: 'my model/train.py',
    line: 12,
    of: '<module>',
  });
  expect(stackFrame('C:\\code\\train.py:7:step')).toEqual({
    path: 'C:\\code\\train.py',
    line: 7,
    of: 'step',
  });
});

it('knows no line where none was recorded, and no place in what is no file', () => {
  expect(stackFrame('train.py(0): step')?.line).toBeNull();
  expect(stackFrame('<built-in method run_backward>')).toBeNull();
  expect(stackFrame('nn.Module: Linear_0')).toBeNull();
});

it('parts a stack into its frames', () => {
  expect(framesOf('a.py(1): f;b.py(2): g')).toEqual(['a.py(1): f', 'b.py(2): g']);
  expect(framesOf('')).toEqual([]);
});
