import type { ReactNode } from 'react';
import { SmallMultiple, type SmallMultipleProps } from '../../charts/small_multiple';
import { isEmpty, type Panel, saidAt } from './panels';

interface Props {
  readonly panel: Panel;
  /** The point whose figures stand in the head. */
  readonly at: number;
  readonly where: string;
  readonly chart: Pick<
    SmallMultipleProps,
    'xs' | 'labels' | 'hovered' | 'onHover' | 'chosen' | 'onChoose'
  >;
}

/** One figure over all points, with what it says at the cursor. */
export function PanelCard({ panel, at, where, chart }: Props): ReactNode {
  const told = saidAt(panel, at);
  return (
    <section className="card panel" aria-label={panel.title}>
      <div className="card-head" title={panel.help}>
        <h2>{panel.title}</h2>
        <p className="panel-where">{where}</p>
      </div>
      {isEmpty(panel) ? (
        <p className="muted panel-none">{panel.none}</p>
      ) : (
        <>
          <p className="panel-said">
            {told.map(({ series, text }) => (
              <span key={series.id}>
                <span
                  className={`swatch swatch-${series.kind}`}
                  style={{ background: series.colour }}
                />
                {series.label !== '' && <span className="muted">{series.label}</span>} {text}
              </span>
            ))}
            {told.length === 0 && <span className="muted">none</span>}
          </p>
          <SmallMultiple
            series={panel.series}
            tickY={panel.tickY}
            {...(panel.mostY === undefined ? {} : { mostY: panel.mostY })}
            {...chart}
          />
        </>
      )}
    </section>
  );
}
