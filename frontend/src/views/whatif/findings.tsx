/** The findings of a trace, to be ticked: what each saves on top of the other changes. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api } from '../../api/client';
import type { WhatIfFix } from '../../api/types.gen';
import { durationRange, shareRange } from '../../core/format';
import { Card } from '../../widgets/card';
import { Goto } from '../../widgets/goto';
import type { Parameters } from './changes';

/** The least fraction of the step that is shown as a saving. */
const LEAST_SHARE = 0.001;

/** What a fix saves, in words. */
export function savingWords({ low_ns, high_ns, is_applied }: WhatIfFix, totalNs: number): string {
  if (high_ns < LEAST_SHARE * totalNs) return is_applied ? 'saves nothing more' : 'no more to save';
  const leastNs = Math.max(0, low_ns);
  return `saves ${durationRange(leastNs, high_ns)} (${shareRange(leastNs / totalNs, high_ns / totalNs)})`;
}

/** The rule whose fix saves most of those that are not ticked; null if none saves anything. */
export function nextOf(fixes: readonly WhatIfFix[], totalNs: number): string | null {
  const rest = fixes.filter((fix) => !fix.is_applied && fix.high_ns >= LEAST_SHARE * totalNs);
  const middle = ({ low_ns, high_ns }: WhatIfFix): number => low_ns + high_ns;
  const best = rest.reduce<WhatIfFix | null>(
    (most, fix) => (most === null || middle(fix) > middle(most) ? fix : most),
    null,
  );
  return best?.rule ?? null;
}

interface Props {
  readonly trace: string;
  readonly parameters: Parameters;
  /** Whether the prediction is requested, which comes first. */
  readonly isWaiting: boolean;
  readonly totalNs: number | undefined;
  readonly onChange: (fixes: readonly string[]) => void;
}

export function Findings({
  trace,
  parameters,
  isWaiting,
  totalNs = 0,
  onChange,
}: Props): ReactNode {
  const query = useQuery({
    queryKey: ['what-if-fixes', trace, parameters],
    queryFn: ({ signal }) =>
      api.get('traces/{trace}/what-if/fixes', { trace, ...parameters }, signal),
    enabled: !isWaiting,
    placeholderData: (previous, last) =>
      last?.queryKey[1] === trace ? keepPreviousData(previous) : undefined,
  });
  const ticked = parameters.fix ?? [];
  const fixes = query.data?.fixes ?? [];
  const gone = ticked.filter((rule) => !fixes.some((fix) => fix.rule === rule));
  if (fixes.length === 0 && gone.length === 0) return null;
  const next = nextOf(fixes, totalNs);
  const box = (rule: string, children: ReactNode): ReactNode => (
    <label className="option">
      <input
        type="checkbox"
        checked={ticked.includes(rule)}
        onChange={({ target }) =>
          onChange(target.checked ? [...ticked, rule] : ticked.filter((other) => other !== rule))
        }
      />
      <span className="grow">{children}</span>
    </label>
  );
  return (
    <Card
      title="Findings"
      label="Findings"
      className={query.isPlaceholderData ? 'stale' : ''}
      note={<Goto to={{ view: 'advice' }}>Advice</Goto>}
    >
      <ul className="whatif-findings">
        {fixes.map((fix) => (
          <li key={fix.rule} title={fix.rule}>
            {box(
              fix.rule,
              <>
                {fix.title}
                {fix.rule === next && <span className="tag whatif-next">next</span>}
                <small className="whatif-hint">{savingWords(fix, totalNs)}</small>
              </>,
            )}
          </li>
        ))}
        {(query.data || query.error) &&
          gone.map((rule) => (
            <li key={rule}>
              {box(
                rule,
                <>
                  {rule}
                  {query.data && <small className="whatif-hint">not found in this trace</small>}
                </>,
              )}
            </li>
          ))}
      </ul>
    </Card>
  );
}
