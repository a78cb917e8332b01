import { type ReactNode, useMemo } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { MemoryFragmentation } from '../../api/types.gen';
import { bytes, duration, quantity, quantityExact, share } from '../../core/format';
import { Code } from '../../widgets/code';
import { type Fact, Facts } from '../../widgets/facts';
import { Loaded } from '../../widgets/loaded';
import { MemoryChart, RESERVED } from './chart';
import type { MemoryScope } from './scope';

const SNAPSHOT = `torch.cuda.memory._record_memory_history(max_entries=100_000)
...
torch.cuda.memory._dump_snapshot("log/my_run/snapshot.pickle")
`;

function UnusedChart({ data }: { readonly data: MemoryFragmentation }): ReactNode {
  const series = useMemo(
    () => ({
      bounds: { from: data.start_ns, to: data.end_ns },
      lines: [
        {
          id: 'unused',
          label: 'Reserved and unused',
          colour: RESERVED,
          values: data.over_time_bytes,
          holds: true,
          isFilled: true,
        },
      ],
    }),
    [data],
  );
  return (
    <MemoryChart
      xs={data.time_ns}
      {...series}
      label={`Reserved and unused memory of ${data.device} over time, at most ${bytes(data.most_unused_bytes)}`}
      height={190}
    />
  );
}

type Figure = readonly [
  label: string,
  value: number | null,
  unit: 'bytes' | 'share',
  help: string,
  note?: string,
];

/** The exact value is in the tooltip, with the meaning. */
const factOf = ([label, value, unit, help, note = '']: Figure): Fact => [
  label,
  <>
    {quantity(value, unit)} <small>{note}</small>
  </>,
  `${help}\n${quantityExact(value, unit)}`,
];

const figuresOf = (data: MemoryFragmentation): Figure[] => [
  [
    'Peak reserved',
    data.most_reserved_bytes,
    'bytes',
    'The most memory that the allocator reserved on the device.',
    `at ${duration(data.reserved_peak_ns)}`,
  ],
  [
    'Unused at that peak',
    data.unused_bytes,
    'bytes',
    'Reserved at that moment, but allocated to no tensor.',
    data.unused_share === null ? '' : `${share(data.unused_share)} of the reserved memory`,
  ],
  [
    'Peak unused',
    data.most_unused_bytes,
    'bytes',
    'The most memory that was reserved and not allocated.',
  ],
  [
    'Unused over time',
    data.mean_unused_share,
    'share',
    'Unused over reserved memory, both summed over time.',
  ],
  [
    'Unused at the end',
    data.end_unused_bytes,
    'bytes',
    'Reserved and not allocated at the last memory event.',
  ],
];

/** Unused memory of the caching allocator. */
export function Fragmentation({ scope }: { readonly scope: MemoryScope }): ReactNode {
  const { device, narrowing, selection } = scope;
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceQuery(selection.span.trace, 'memory/fragmentation', {
    device,
    start_ns,
    end_ns,
  });
  return (
    <div className="memory-part column grow memory-scroll">
      <Loaded query={query} what="Fragmentation">
        {(data) => (
          <section className="memory-growth" aria-label="Fragmentation">
            <Facts className="memory-fact-row facts" facts={figuresOf(data).map(factOf)} />
            <UnusedChart data={data} />
            <p className="muted">
              Unused memory is cached for later, lost to rounding, or in pieces too small for the
              next request: an upper bound of fragmentation. A memory snapshot in the folder of the
              run shows which:
            </p>
            <Code code={SNAPSHOT} />
          </section>
        )}
      </Loaded>
    </div>
  );
}
