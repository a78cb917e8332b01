import { describe, expect, it } from 'vitest';
import { claim, outcome } from '../../../tests/samples';
import { findingMarkdown } from './markdown';

const context = { run: 'resnet', perStep: true, link: 'http://localhost/#view=advice' };

describe('a finding as Markdown', () => {
  it('holds the saving, the evidence, the fix and the way back', () => {
    const text = findingMarkdown(
      outcome({
        severity: 'critical',
        confidence: 'high',
        claim: claim(59_300_000),
        message: 'The GPU waits.',
        evidence: [{ label: 'Idle | waiting', value: 59_300_000, unit: 'ns', link: null }],
        events: [
          {
            name: 'next',
            track: 'thread 1',
            start_ns: 1_500_000,
            duration_ns: 69_000_000,
            detail: '',
            event: null,
          },
        ],
        fix: {
          summary: 'Use workers.',
          code: 'DataLoader(num_workers=4)\n',
          language: 'python',
          verify: 'Record again.',
          caveats: ['Mind the memory.'],
        },
      }),
      context,
    );
    expect(text).toBe(`### Reading single values back stalls the step

\`item-sync\` · critical, high confidence · run \`resnet\`, worker \`worker0\`, span 1

**Saving:** up to 59.3 ms per step (59.3 %), likely 44.5–59.3 ms. Reckoned from idle time.

The GPU waits.

| Evidence | Value |
| --- | --- |
| Idle \\| waiting | 59.3 ms |

| Worst events | Track | At | Duration | Detail |
| --- | --- | --- | --- | --- |
| next | thread 1 | 1.500 ms | 69.0 ms |  |

**Fix:** Use workers.

\`\`\`python
DataLoader(num_workers=4)
\`\`\`

**Verify:** Record again.

**Caveats:**
- Mind the memory.

[In stepscope](http://localhost/#view=advice)
`);
  });

  it('says what makes it doubtful', () => {
    const doubts = ['the file ends in the middle', 'the gzip stream breaks off'];
    expect(findingMarkdown(outcome({ doubts }), context)).toContain(
      '\n**Doubtful:** The file ends in the middle. The gzip stream breaks off.\n',
    );
  });

  it('fences code that holds fences', () => {
    const fix = { summary: 's', code: '```', language: '', verify: '', caveats: [] };
    expect(findingMarkdown(outcome({ fix }), context)).toContain('````\n```\n````');
  });
});
