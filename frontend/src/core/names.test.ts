import fc from 'fast-check';
import { expect, it } from 'vitest';
import { shortName } from './names';

it.each([
  [
    'void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>, at::detail::Array<char*, 1>)',
    'vectorized_elementwise_kernel<4, FillFunctor<…>, Array<…> >',
  ],
  [
    'void (anonymous namespace)::softmax_warp_forward<float, 5>(float*)',
    'softmax_warp_forward<float, 5>',
  ],
  ['void dot_kernel(float const*)', 'dot_kernel'],
])('shortens %s', (name, short) => {
  expect(shortName(name)).toBe(short);
});

it.each([
  'aten::add_',
  'autograd::engine::evaluate_function: ConvolutionBackward0',
  'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__',
  'ampere_sgemm_128x64_tn',
  '<built-in method run_backward>',
  'Memcpy HtoD (Pageable -> Device)',
])('leaves %s alone', (name) => {
  expect(shortName(name)).toBe(name);
});

it('never gives an empty or a longer name', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (text) => {
      const short = shortName(text);
      expect(short.length).toBeGreaterThan(0);
      expect(short.length).toBeLessThanOrEqual(text.length + 2 * (text.match(/</g)?.length ?? 0));
    }),
  );
});
