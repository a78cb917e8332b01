import { type ReactNode, useMemo, useSyncExternalStore } from 'react';
import type { RankSteps } from '../../../api/types.gen';
import { themeStore } from '../../../host/theme';
import { ramp, type Scale } from './scale';
import { signed, withMinus } from './words';

interface Props {
  readonly scale: Scale;
  readonly unit: RankSteps['unit'];
  readonly isHighBad: boolean;
}

const STOPS = 16;

/** What the colours stand for, with the ends in figures. */
export function Legend({ scale, unit, isHighBad }: Props): ReactNode {
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const stops = useMemo(() => {
    const colours = ramp(scale.isDiverging, theme, isHighBad);
    const last = colours.length - 1;
    return Array.from({ length: STOPS + 1 }, (_, at) => colours[Math.round((at / STOPS) * last)]);
  }, [scale.isDiverging, theme, isHighBad]);
  const words = scale.isDiverging ? signed : withMinus;
  return (
    <div className="heat-legend">
      <span>{`${scale.isCutLow ? '≤ ' : ''}${words(scale.low, unit)}`}</span>
      <span
        className="heat-ramp"
        style={{ background: `linear-gradient(to right, ${stops.join(', ')})` }}
        aria-hidden="true"
      />
      <span>{`${scale.isCutHigh ? '≥ ' : ''}${words(scale.high, unit)}`}</span>
      {scale.isDiverging && <span className="muted">beside the step’s median</span>}
      <span className="heat-none" aria-hidden="true" />
      <span className="muted">not recorded</span>
    </div>
  );
}
