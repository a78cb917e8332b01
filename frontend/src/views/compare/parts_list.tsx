import type { ReactNode } from 'react';
import type { Part } from '../../api/types.gen';
import { change, quantity, quantityExact, relativeChange } from '../../core/format';
import { Card } from '../../widgets/card';
import { deltaOf } from './phrases';

interface Props {
  readonly title: string;
  readonly note: string;
  readonly parts: readonly Part[];
  /** Whether all bars share one scale. */
  readonly isOneScale: boolean;
  readonly none: string;
}

const largestOf = (part: Part): number => Math.max(part.change.before, part.change.after);

function Pair({ part, scale }: { readonly part: Part; readonly scale: number }): ReactNode {
  const { before, after, unit } = part.change;
  const width = (value: number): string => `${scale > 0 ? (value / scale) * 100 : 0}%`;
  const exact = `${quantityExact(before, unit)} → ${quantityExact(after, unit)}`;
  return (
    <tr title={`${part.label}: ${exact}\n${part.meaning}`}>
      <th scope="row">{part.label}</th>
      <td className="pair-track" aria-hidden="true">
        <span className="pair-before" style={{ width: width(before) }} />
        <span className="pair-after" style={{ width: width(after) }} />
      </td>
      <td className="number">{quantity(before, unit)}</td>
      <td className="number">{quantity(after, unit)}</td>
      <td className="number strong">{change(deltaOf(part.change), unit)}</td>
      {/* Changes of a percentage are in points, without a relative change. */}
      <td className="number muted">{unit === 'share' ? '' : relativeChange(before, after)}</td>
    </tr>
  );
}

/** Values before and after, each with a pair of bars. */
export function PartsList({ title, note, parts, isOneScale, none }: Props): ReactNode {
  const shown = parts.filter((part) => largestOf(part) > 0);
  const largest = Math.max(0, ...shown.map(largestOf));
  const scaleOf = (part: Part): number => {
    if (isOneScale) return largest;
    return part.change.unit === 'share' ? 1 : largestOf(part);
  };
  return (
    <Card title={title} note={note}>
      {shown.length === 0 ? (
        <p className="muted">{none}</p>
      ) : (
        <div className="scroll-x">
          <table className="plain pairs" aria-label={title}>
            <thead>
              <tr>
                <td />
                <td className="pair-key note" aria-hidden="true">
                  <span className="pair-before" /> before <span className="pair-after" /> after
                </td>
                <th scope="col">Before</th>
                <th scope="col">After</th>
                <th scope="col">Difference</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {shown.map((part) => (
                <Pair key={part.id} part={part} scale={scaleOf(part)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
