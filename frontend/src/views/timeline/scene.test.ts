import { expect, it } from 'vitest';
import { briefName } from './scene';

it.each([
  ['aten::conv2d', 'conv2d'],
  ['autograd::engine::evaluate_function: NllLossBackward0', 'evaluate_function: NllLossBackward0'],
  ['torch/nn/modules/module.py(1501): _call_impl', '_call_impl'],
  ['cutlass::Kernel<a::b>', 'Kernel<a::b>'],
  ['Kernel<a::b>', 'Kernel<a::b>'],
  ['cudaLaunchKernel', 'cudaLaunchKernel'],
  ['odd::', 'odd::'],
])('shortens %s to %s', (name, brief) => {
  expect(briefName(name)).toBe(brief);
});
