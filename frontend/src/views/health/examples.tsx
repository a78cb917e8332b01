import type { ReactNode } from 'react';
import type { HealthExample } from '../../api/types.gen';
import { visible } from '../../core/excerpt';
import { count, instant, quantityExact } from '../../core/format';
import { timelinePlace } from '../../state/timeline_place';
import { Copy } from '../../widgets/copy';
import { Goto } from '../../widgets/goto';

interface Props {
  readonly examples: readonly HealthExample[];
  /** The kind of what was found there. */
  readonly of: string;
}

const asText = (examples: readonly HealthExample[], kind: string): string =>
  examples.map((each) => `${kind} at byte ${each.offset_bytes}: ${each.text}`.trimEnd()).join('\n');

/** Where in the file it stands, and what stands there. */
export function Examples({ examples, of }: Props): ReactNode {
  if (examples.length === 0) return null;
  const isTimed = examples.some((example) => example.start_ns !== null);
  return (
    <div className="examples">
      <div className="scroll-x">
        <table className="plain">
          <thead>
            <tr>
              <th scope="col" className="number" title="Of the JSON, inflated if it is compressed">
                At byte
              </th>
              {isTimed && (
                <th scope="col" className="number">
                  At time
                </th>
              )}
              <th scope="col">What stands there</th>
            </tr>
          </thead>
          <tbody>
            {examples.map(({ offset_bytes, start_ns, text }) => (
              <tr key={`${offset_bytes} ${text}`}>
                <td className="number mono">{count(offset_bytes)}</td>
                {isTimed && (
                  <td className="number" title={quantityExact(start_ns, 'ns')}>
                    {start_ns === null ? (
                      '–'
                    ) : (
                      <Goto to={timelinePlace(start_ns, start_ns + 1)}>{instant(start_ns)}</Goto>
                    )}
                  </td>
                )}
                <td className="mono excerpt">{visible(text) || 'the end of the file'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Copy text={() => asText(examples, of)} label="Copy places" quiet />
    </div>
  );
}
