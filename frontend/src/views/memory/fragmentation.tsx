import { lazy, type ReactNode, Suspense, useMemo, useSyncExternalStore } from 'react';
import { useTraceAnswer } from '../../api/queries';
import type { MemoryFragmentation } from '../../api/types.gen';
import { bytes, duration, quantity, quantityExact, share } from '../../core/format';
import type { Unit } from '../../core/units';
import { themeStore } from '../../host/theme';
import { Code } from '../../widgets/code';
import { Loaded } from '../../widgets/loaded';
import { RESERVED, WORDS } from './curve';
import type { Asked } from './memory';

const TimeSeries = lazy(() => import('../../charts/time_series'));
const SNAPSHOT = `torch.cuda.memory._record_memory_history(max_entries=100_000)
...
torch.cuda.memory._dump_snapshot("log/my_run/snapshot.pickle")
`;

interface FactProps {
  readonly label: string;
  readonly help: string;
  readonly value: number | null;
  readonly unit: Unit;
  readonly note?: string;
}

function Fact({ label, help, value, unit, note }: FactProps): ReactNode {
  return (
    <div className="memory-fact" title={help}>
      <dt>{label}</dt>
      <dd title={quantityExact(value, unit)}>{quantity(value, unit)}</dd>
      {note !== undefined && <dd className="muted">{note}</dd>}
    </div>
  );
}

function UnusedChart({ found }: { readonly found: MemoryFragmentation }): ReactNode {
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const lines = useMemo(
    () => [
      {
        id: 'unused',
        label: 'Reserved and unused',
        colour: RESERVED,
        values: found.over_time_bytes,
        holds: true,
        isFilled: true,
      },
    ],
    [found],
  );
  const bounds = useMemo(() => ({ from: found.start_ns, to: found.end_ns }), [found]);
  return (
    <Suspense fallback={<div style={{ height: 190 }} />}>
      <TimeSeries
        xs={found.time_ns}
        lines={lines}
        bounds={bounds}
        words={WORDS}
        label={`Reserved and unused memory of ${found.device} over time, at most ${bytes(found.most_unused_bytes)}`}
        height={190}
        theme={theme}
      />
    </Suspense>
  );
}

function Facts({ found }: { readonly found: MemoryFragmentation }): ReactNode {
  const unusedNote =
    found.unused_share === null ? '' : `${share(found.unused_share)} of what was reserved`;
  return (
    <dl className="memory-fact-row">
      <Fact
        label="Most reserved"
        help="The most that the allocator took from the device."
        value={found.most_reserved_bytes}
        unit="bytes"
        note={`at ${duration(found.reserved_peak_ns)}`}
      />
      <Fact
        label="Unused then"
        help="Reserved at that moment, and allocated to no tensor."
        value={found.unused_bytes}
        unit="bytes"
        note={unusedNote}
      />
      <Fact
        label="Most unused"
        help="The most that was ever reserved and not allocated."
        value={found.most_unused_bytes}
        unit="bytes"
      />
      <Fact
        label="Unused over time"
        help="Unused over reserved memory, both summed over time."
        value={found.mean_unused_share}
        unit="share"
      />
      <Fact
        label="Unused at the end"
        help="Reserved and not allocated at the recording's last memory event."
        value={found.end_unused_bytes}
        unit="bytes"
      />
    </dl>
  );
}

/** How much of what the caching allocator holds lies unused. */
export function Fragmentation({ asked }: { readonly asked: Asked }): ReactNode {
  const { device, narrowing, selection } = asked;
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceAnswer<MemoryFragmentation>(selection.span.trace, 'memory/fragmentation', {
    device,
    start_ns,
    end_ns,
  });
  return (
    <div className="memory-part memory-scroll">
      <Loaded query={query} what="Fragmentation">
        {(found) => (
          <section className="memory-growth" aria-label="Fragmentation">
            <Facts found={found} />
            <UnusedChart found={found} />
            <p className="muted">
              Unused is what the allocator keeps for later, what it lost to rounding, and what lies
              in pieces too small for the next request: an upper bound of fragmentation. A memory
              snapshot in the run’s folder tells them apart:
            </p>
            <Code code={SNAPSHOT} />
          </section>
        )}
      </Loaded>
    </div>
  );
}
