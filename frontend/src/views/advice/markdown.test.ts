import { describe, expect, it } from 'vitest';
import { claim, outcome } from '../../../tests/samples';
import { findingMarkdown } from './markdown';

const context = { run: 'resnet', perStep: true, link: 'http://localhost/#view=advice' };

describe('a finding as Markdown', () => {
  it('holds saving, evidence, fix and address', () => {
    const text = findingMarkdown(
      outcome({
        severity: 'critical',
        confidence: 'high',
        claim: claim(59_300_000),
        message: 'The GPU waits.',
        evidence: [{ label: 'Idle | waiting', value: 59_300_000, unit: 'ns', link: null }],
        events: [
          {
            name: 'void gemm<float>(int)',
            track: 'thread 1',
            start_ns: 1_500_000,
            duration_ns: 69_000_000,
            detail: '',
            event: null,
          },
        ],
        tables: [
          {
            label: 'Kernels of it',
            columns: [
              { label: 'Kernel', unit: 'code' },
              { label: 'Stream', unit: 'count' },
              { label: 'Time', unit: 'ns' },
            ],
            rows: [
              { cells: ['void add<a|b>()', 7, 2_000_000], link: null },
              { cells: [null, null, 1_000], link: null },
            ],
          },
          { label: 'Of nothing', columns: [{ label: 'Rank', unit: 'count' }], rows: [] },
        ],
        locations: [
          { path: 'train.py', line: 12, function: 'step' },
          { path: 'loss.py', line: 0, function: '' },
        ],
        effort: 'flag',
        risk: 'memory',
        fix: {
          summary: 'Use workers.',
          code: 'DataLoader(num_workers=4)\n',
          language: 'python',
          verify: 'Record again.',
          caveats: ['Watch the memory.'],
        },
      }),
      context,
    );
    expect(text).toBe(`### Reading single values back stalls the step

\`item-sync\` · critical, high confidence · run \`resnet\`, worker \`worker0\`, span 1

**Potential saving:** 44.5–59.3 ms per step (44.5–59.3 % of the step). Estimated from idle time.

The GPU waits.

| Evidence | Value |
| --- | --- |
| Idle \\| waiting | 59.3 ms |

**Kernels of it:**

| Kernel | Stream | Time |
| --- | --- | --- |
| \`void add<a\\|b>()\` | 7 | 2.00 ms |
| – | – | 1.00 µs |

| Worst events | Track | At | Duration | Detail |
| --- | --- | --- | --- | --- |
| \`void gemm<float>(int)\` | thread 1 | 1.500 ms | 69.0 ms |  |

**Source lines:** \`train.py:12 (step)\`, \`loss.py\`

**Fix:** Use workers.

\`\`\`python
DataLoader(num_workers=4)
\`\`\`

**Effort:** an argument or a line · **Risk:** needs more memory

**Verify:** Record again.

**Caveats:**
- Watch the memory.

[In stepscope](<http://localhost/#view=advice>)
`);
  });

  it('holds the reasons for doubt', () => {
    const doubts = ['the file ends in the middle', 'the gzip stream breaks off'];
    expect(findingMarkdown(outcome({ doubts }), context)).toContain(
      '\n**Doubtful:** The file ends in the middle. The gzip stream breaks off.\n',
    );
  });

  it('fences code that contains fences', () => {
    const fix = { summary: 's', code: '```', language: '', verify: '', caveats: [] };
    expect(findingMarkdown(outcome({ fix }), context)).toContain('````\n```\n````');
    const evidence = [{ label: 'In', value: 'a`b', unit: 'code' as const, link: null }];
    expect(findingMarkdown(outcome({ evidence }), context)).toContain('| In | `` a`b `` |');
  });
});
