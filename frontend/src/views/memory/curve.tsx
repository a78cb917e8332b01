import { type ReactNode, useMemo } from 'react';
import type { Narrowing } from '../../api/queries';
import type { MemoryOverTime } from '../../api/types.gen';
import type { Band, Line, Mark, Range, Spot } from '../../charts/time_series_types';
import { MEMORY_COLOURS } from '../../core/colour';
import { bytes, duration, plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { ALLOCATED, MemoryChart, RESERVED } from './chart';

const HEIGHT = 206;

interface Props {
  readonly curve: MemoryOverTime;
  readonly narrowing: Narrowing | null;
  readonly moment: number | null;
  readonly spots: readonly Spot[];
}

function linesOf({ levels, devices, device }: MemoryOverTime): Line[] {
  const hasTotals = devices.find(({ id }) => id === device)?.has_totals ?? true;
  const allocated: Line = {
    id: 'allocated',
    label: hasTotals ? 'Allocated' : 'Change since the beginning',
    colour: ALLOCATED,
    values: levels.allocated_bytes,
    holds: true,
    isFilled: true,
  };
  if (levels.reserved_bytes.length === 0) return [allocated];
  return [
    allocated,
    {
      id: 'reserved',
      label: 'Reserved',
      colour: RESERVED,
      values: levels.reserved_bytes,
      holds: true,
    },
  ];
}

function marksOf(curve: MemoryOverTime, moment: number | null): Mark[] {
  const ooms = curve.ooms.map((oom) => ({
    x: oom.time_ns,
    label: oom.asked_bytes === null ? 'out of memory' : `no ${bytes(oom.asked_bytes)} left`,
    colour: MEMORY_COLOURS['out-of-memory'],
  }));
  return moment === null
    ? ooms
    : [...ooms, { x: moment, label: 'selected', colour: MEMORY_COLOURS.moment }];
}

function peaksOf({ peak }: MemoryOverTime): Spot[] {
  if (!peak) return [];
  return [
    { x: peak.time_ns, y: peak.bytes, label: `peak ${bytes(peak.bytes)}`, colour: ALLOCATED },
  ];
}

const bandsOf = ({ steps }: MemoryOverTime): Band[] =>
  steps.map(({ number, start_ns, end_ns }) => ({
    from: start_ns,
    to: end_ns,
    label: `step ${number}`,
  }));

/** The curve as text, for screen readers. */
function describe(curve: MemoryOverTime): string {
  const { device, start_ns, end_ns, peak, ooms } = curve;
  const time = `from ${duration(start_ns)} to ${duration(end_ns)}`;
  const most = peak ? ` At most ${bytes(peak.bytes)} at ${duration(peak.time_ns)}.` : '';
  const failed = ooms.length > 0 ? ` Out of memory ${plural(ooms.length, 'time')}.` : '';
  return `Memory of ${device} ${time}.${most}${failed} Arrow keys move along it, with Shift they select a time range.`;
}

/** Memory over time; a drag filters all views to a time range, a click selects a moment. */
export function Curve({ curve, narrowing, moment, spots }: Props): ReactNode {
  const { location, go } = useNavigation();
  const drawn = useMemo(
    () => ({
      lines: linesOf(curve),
      peaks: peaksOf(curve),
      bands: bandsOf(curve),
      bounds: { from: curve.start_ns, to: curve.end_ns },
    }),
    [curve],
  );
  const marks = useMemo(() => marksOf(curve, moment), [curve, moment]);
  // When zoomed in, the selected time is the whole curve.
  const isWhole = narrowing?.start_ns === curve.start_ns && narrowing.end_ns === curve.end_ns;
  const onRange = (range: Range | null): void => {
    if (!range) {
      const options = withOptions(location.options, { at: null, zoom: null });
      go({ time: null, step: null, options });
    } else {
      const options = withOptions(location.options, { at: null });
      const [startNs, endNs] = [Math.max(0, Math.floor(range.from)), Math.ceil(range.to)];
      if (endNs > startNs) go({ time: { startNs, endNs }, step: null, options });
    }
  };
  const onPick = (x: number): void =>
    go({ options: { ...location.options, at: String(Math.max(0, Math.round(x))) } }, 'replace');
  return (
    <MemoryChart
      xs={curve.levels.time_ns}
      {...drawn}
      marks={marks}
      spots={spots}
      range={isWhole ? null : narrowing && { from: narrowing.start_ns, to: narrowing.end_ns }}
      onRange={onRange}
      onPick={onPick}
      label={describe(curve)}
      height={HEIGHT}
    />
  );
}
