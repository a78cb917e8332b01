import { describe, expect, it } from 'vitest';
import { diffOf } from './code_change';

describe('the diff of a fix', () => {
  it('shows the code that its comments replace', () => {
    const code = [
      'running += loss.detach()    # instead of running += loss.item()',
      'if step % 100 == 0:',
      '    print(running.item())   # one wait in a hundred steps',
      '# and torch.where(condition, a, b) instead of `if condition:` on a tensor',
    ].join('\n');
    expect(diffOf(code)?.split('\n')).toEqual([
      '-running += loss.item()',
      '+running += loss.detach()',
      '+if step % 100 == 0:',
      '+    print(running.item())   # one wait in a hundred steps',
      ' # and torch.where(condition, a, b) instead of `if condition:` on a tensor',
    ]);
  });

  it('assigns a replaced value to the same name, and leaves the reason in a comment', () => {
    expect(diffOf('    x = torch.where(mask, x, 0)  # instead of x[mask]: the shape stays')).toBe(
      '-    x = x[mask]\n+    x = torch.where(mask, x, 0)  # the shape stays',
    );
    expect(diffOf('outputs = model(torch.stack(a))  # not [model(x) for x in a]')).toBe(
      '-outputs = [model(x) for x in a]\n+outputs = model(torch.stack(a))',
    );
  });

  it('takes a comment line for the line before', () => {
    expect(diffOf('# not (a - b).norm(dim=-1)\ndistances = torch.cdist(a, b)\n')).toBe(
      '-(a - b).norm(dim=-1)\n+distances = torch.cdist(a, b)',
    );
  });

  it.each([
    'losses.append(loss.detach())    # not loss, which keeps its graph',
    'model = DDP(model)  # find_unused_parameters=False, the default',
    '# in place of a loop over p.grad, and of foreach=False',
    '',
  ])('is none of %j', (code) => {
    expect(diffOf(code)).toBeNull();
  });
});
