import type { ReactNode } from 'react';
import type { HealthExample } from '../../api/types.gen';
import { visible } from '../../core/excerpt';
import { count, instant, quantityExact } from '../../core/format';
import { timelineLocation } from '../../state/timeline_location';
import { Copy } from '../../widgets/copy';
import { Goto } from '../../widgets/goto';
import { type PlainColumn, PlainTable } from '../../widgets/plain_table';

const TIME: PlainColumn<HealthExample> = {
  label: 'Time',
  isNumber: true,
  title: ({ start_ns }) => quantityExact(start_ns, 'ns'),
  cell: ({ start_ns }) =>
    start_ns === null ? (
      '–'
    ) : (
      <Goto to={timelineLocation(start_ns, start_ns + 1)}>{instant(start_ns)}</Goto>
    ),
};

interface Props {
  readonly examples: readonly HealthExample[];
  /** The kind of the item. */
  readonly of: string;
}

const asText = (examples: readonly HealthExample[], kind: string): string =>
  examples
    .map((example) => `${kind} at byte ${example.offset_bytes}: ${example.text}`.trimEnd())
    .join('\n');

/** Positions in the file with their contents. */
export function Examples({ examples, of }: Props): ReactNode {
  if (examples.length === 0) return null;
  const isTimed = examples.some((example) => example.start_ns !== null);
  return (
    <div className="examples">
      <div className="scroll-x">
        <PlainTable
          rows={examples}
          keyOf={({ offset_bytes, text }) => `${offset_bytes} ${text}`}
          columns={[
            {
              label: <span title="Of the JSON, after decompression">Byte</span>,
              isNumber: true,
              className: 'mono',
              cell: ({ offset_bytes }) => count(offset_bytes),
            },
            ...(isTimed ? [TIME] : []),
            {
              label: 'Content',
              className: 'mono excerpt',
              cell: ({ text }) => visible(text) || 'the end of the file',
            },
          ]}
        />
      </div>
      <Copy text={() => asText(examples, of)} label="Copy positions" quiet />
    </div>
  );
}
