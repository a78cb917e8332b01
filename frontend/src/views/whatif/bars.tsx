/** The recorded and the simulated step as two stacked bars of one scale. */
import type { ReactNode } from 'react';
import type { WhatIfPart, WhatIfStep } from '../../api/types.gen';
import { colourOf } from '../../core/colour';
import { duration, durationRange, quantityExact, share } from '../../core/format';

/** Categories with the colours of the parts. */
const COLOURS: Readonly<Record<string, string>> = {
  host: 'cpu',
  device: 'kernel',
  'launches and waits': 'synchronization',
  'waiting for workers': 'dataloader',
};

export const partColour = (name: string): string => colourOf(COLOURS[name] ?? name);
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

interface BarProps {
  readonly label: string;
  readonly parts: readonly (readonly [name: string, timeNs: number])[];
  readonly totalNs: number;
  /** The length of the longer bar. */
  readonly mostNs: number;
  /** Time that is saved for sure. */
  readonly savedNs: number;
  /** Time that may be saved in addition; it follows the parts. */
  readonly unsureNs: number;
}

function Bar({ label, parts, totalNs, mostNs, savedNs, unsureNs }: BarProps): ReactNode {
  const shown = parts.filter(([, timeNs]) => timeNs > 0);
  const words = shown.map(([name, timeNs]) => `${name} ${duration(timeNs)}`).join(', ');
  const width = (ns: number): string => `${(ns / mostNs) * 100}%`;
  return (
    <div
      className="whatif-bar"
      role="img"
      aria-label={`${label}, ${durationRange(totalNs, totalNs + unsureNs)}: ${words}`}
    >
      <span className="muted">{label}</span>
      <span className="whatif-track">
        {shown.map(([name, timeNs]) => (
          <span
            key={name}
            style={{ width: width(timeNs), background: partColour(name) }}
            title={`${capital(name)}: ${quantityExact(timeNs, 'ns')}, ${share(timeNs / totalNs)}`}
          />
        ))}
        {unsureNs > 0 && (
          <span
            className="whatif-unsure"
            style={{ width: width(unsureNs) }}
            title={`Saved at most: ${quantityExact(unsureNs, 'ns')} more`}
          />
        )}
        {savedNs > 0 && (
          <span
            className="whatif-saved"
            style={{ width: width(savedNs) }}
            title={`Saved at least: ${quantityExact(savedNs, 'ns')}`}
          />
        )}
      </span>
      <span className="strong number" title={quantityExact(totalNs, 'ns')}>
        {durationRange(totalNs, totalNs + unsureNs)}
      </span>
    </div>
  );
}

interface Props {
  readonly step: WhatIfStep;
}

export function Bars({ step }: Props): ReactNode {
  const { recorded_ns: recorded, simulated_ns: simulated, slowest_ns: slowest, parts } = step;
  const mostNs = Math.max(recorded, slowest, 1);
  const ofParts = (time: (part: WhatIfPart) => number): BarProps['parts'] =>
    parts.map((part) => [part.name, time(part)]);
  return (
    <figure className="whatif-bars">
      <Bar
        label="Recorded"
        parts={ofParts((part) => part.recorded_ns)}
        totalNs={recorded}
        mostNs={mostNs}
        savedNs={0}
        unsureNs={0}
      />
      <Bar
        label="Simulated"
        parts={ofParts((part) => part.simulated_ns)}
        totalNs={simulated}
        mostNs={mostNs}
        savedNs={recorded - slowest}
        unsureNs={slowest - simulated}
      />
    </figure>
  );
}
