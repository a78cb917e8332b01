import { lazy, type ReactNode, Suspense } from 'react';
import type { TimeSeriesProps } from '../../charts/time_series_types';
import { MEMORY_COLOURS } from '../../core/colour';
import { BYTE_STEPS, bytes, instant, tick, tickBytes } from '../../core/format';
import { useTheme } from '../../host/theme';
import '../../charts/charts.css';

const TimeSeries = lazy(() => import('../../charts/time_series'));

export const { allocated: ALLOCATED, reserved: RESERVED } = MEMORY_COLOURS;

/** Formats of times and sizes on the axes and in the tooltip. */
export const AXIS_FORMAT: TimeSeriesProps['words'] = {
  tickX: tick,
  x: instant,
  tickY: tickBytes,
  stepsY: BYTE_STEPS,
  y: bytes,
};

type Props = Omit<TimeSeriesProps, 'theme' | 'words'> & Partial<Pick<TimeSeriesProps, 'words'>>;

/** Memory over time or over steps; the code of the chart loads on first use. */
export function MemoryChart({ words = AXIS_FORMAT, ...props }: Props): ReactNode {
  const theme = useTheme();
  return (
    <Suspense fallback={<div style={{ height: props.height }} />}>
      <TimeSeries {...props} words={words} theme={theme} />
    </Suspense>
  );
}

interface KeyProps {
  readonly label: string;
  readonly colour: string;
  readonly title?: string | undefined;
}

/** An entry of a legend. */
export function LegendKey({ label, colour, title }: KeyProps): ReactNode {
  return (
    <span className="inline" title={title}>
      <span className="swatch" style={{ background: colour }} /> {label}
    </span>
  );
}
