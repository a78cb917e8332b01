import type { ReactNode } from 'react';
import type { Overview, ServingPhase } from '../../api/types.gen';
import { count, duration, plural, quantityExact, share } from '../../core/format';
import { Card } from '../../widgets/card';
import { PlainTable } from '../../widgets/plain_table';

const NAMES: Readonly<Record<ServingPhase['phase'], string>> = {
  prefill: 'Prefill',
  decode: 'Decode',
  mixed: 'Mixed',
  unknown: 'Unknown',
};
const HELP: Readonly<Record<ServingPhase['phase'], string>> = {
  prefill: 'Forward passes over prompts only.',
  decode: 'Forward passes that only produce output tokens.',
  mixed: 'Forward passes over prompts and output tokens together.',
  unknown: 'The name of the iteration does not state its phase.',
};

const number = (value: number | null): string => (value === null ? '–' : count(value));

function requestsOf({ request_count, iteration_count }: ServingPhase): string {
  return request_count === null ? '–' : count(request_count / iteration_count);
}

/** How the phases were decided, and what a request waits for a token. */
export function servingSentence(phases: readonly ServingPhase[]): string {
  if (phases.some(({ source }) => source !== 'annotation')) {
    return 'The phases were not recorded: iterations are the Python calls of the forward pass.';
  }
  const decided = 'Phases are those that the engine’s annotations state.';
  const decode = phases.find(({ phase }) => phase === 'decode');
  if (!decode || decode.time_per_output_token_ns === null) return decided;
  return `In decode, a request waits ${duration(decode.time_per_output_token_ns)} for an output token. ${decided}`;
}

/** Prefill and decode of a serving engine; nothing for other programs. */
export function Serving({ overview }: { readonly overview: Overview }): ReactNode {
  const { serving: phases = [], device_label, devices } = overview;
  if (phases.length === 0) return null;
  const iterations = phases.reduce((sum, { iteration_count }) => sum + iteration_count, 0);
  return (
    <Card title="Serving phases" note={plural(iterations, 'iteration')}>
      <p className="note">{servingSentence(phases)}</p>
      <div className="scroll-x">
        <PlainTable
          caption="Phases of the serving engine"
          rows={phases}
          keyOf={({ phase }) => phase}
          columns={[
            {
              label: 'Phase',
              isHeader: true,
              title: ({ phase }) => HELP[phase],
              cell: ({ phase }) => NAMES[phase],
            },
            { label: 'Iterations', isNumber: true, cell: (row) => count(row.iteration_count) },
            {
              label: <span title="Requests per iteration, on average">Requests</span>,
              isNumber: true,
              cell: requestsOf,
            },
            {
              label: 'Prompt tokens',
              isNumber: true,
              cell: (row) => number(row.prompt_token_count),
            },
            {
              label: 'Output tokens',
              isNumber: true,
              cell: (row) => number(row.output_token_count),
            },
            {
              label: (
                <span title="Duration of the iterations, without the time in between, and its fraction of all phases">
                  Time
                </span>
              ),
              isNumber: true,
              title: (row) => quantityExact(row.wall_ns, 'ns'),
              cell: (row) => `${duration(row.wall_ns)} (${share(row.wall_share)})`,
            },
            {
              label: 'Mean',
              isNumber: true,
              title: (row) => quantityExact(row.mean_ns, 'ns'),
              cell: (row) => duration(row.mean_ns),
            },
            ...(devices.length > 0
              ? [
                  {
                    label: (
                      <span title="Fraction of the time in which device work of the iterations ran">
                        {device_label} busy
                      </span>
                    ),
                    isNumber: true,
                    title: (row: ServingPhase) => quantityExact(row.device_busy_ns, 'ns'),
                    cell: (row: ServingPhase) =>
                      share(row.device_busy_ns / Math.max(1, row.wall_ns)),
                  },
                ]
              : []),
            {
              label: <span title="How long a request waits for an output token">Per token</span>,
              isNumber: true,
              cell: ({ time_per_output_token_ns: ns }) => (ns === null ? '–' : duration(ns)),
            },
          ]}
        />
      </div>
    </Card>
  );
}
