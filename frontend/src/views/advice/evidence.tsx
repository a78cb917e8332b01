import type { ReactNode } from 'react';
import type { Evidence, EvidenceTable, Link } from '../../api/types.gen';
import { quantity, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { sentence } from '../../core/sentence';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { type PlainColumn, PlainTable } from '../../widgets/plain_table';
import { Prose } from '../../widgets/prose';
import { SourceLine } from '../../widgets/source_line';
import { useTarget } from './links';

type Cell = EvidenceTable['rows'][number]['cells'][number];
type Unit = Evidence['unit'];

const textOf = (value: Exclude<Cell, null>, unit: Unit): string => {
  const text = quantity(value, unit);
  return unit === 'code' ? shortName(text) : text;
};

const isText = (unit: Unit): boolean => unit === 'text' || unit === 'code';

/** A Python frame in the notation of the profiler: `train.py(12): forward`. */
const FRAME = /^(.+?)\((\d{1,9})\): (.*)$/;

/** Links to a piece of evidence in another view, and to its source line. */
function EvidenceLink({ link }: { readonly link: Link }): ReactNode {
  const target = useTarget()(link);
  const [, path, line, of] = FRAME.exec(link.source ?? '') ?? [];
  return (
    <span className="where inline">
      {path !== undefined && <SourceLine path={path} line={Number(line)} of={of} />}
      <Goto to={target}>
        {target.view}
        {link.rank !== null && link.rank !== undefined && ` of rank ${link.rank}`}{' '}
        <Icon name="arrow" size={13} />
      </Goto>
    </span>
  );
}

function Fact({ row }: { readonly row: Evidence }): ReactNode {
  return (
    <tr>
      <th scope="row">{row.label}</th>
      <td className={row.unit === 'code' ? 'mono' : ''} title={quantityExact(row.value, row.unit)}>
        {textOf(row.value, row.unit)}
      </td>
      <td className="evidence-link">{row.link && <EvidenceLink link={row.link} />}</td>
    </tr>
  );
}

/** Measured facts with links. */
export function EvidenceFacts({ rows }: { readonly rows: readonly Evidence[] }): ReactNode {
  if (rows.length === 0) return null;
  return (
    <table className="plain evidence">
      <tbody>
        {rows.map((row) => (
          <Fact key={row.label} row={row} />
        ))}
      </tbody>
    </table>
  );
}

/** The kernels, operators, source lines or ranks of a finding, the worst first. */
export function EvidenceTables(props: { readonly tables: readonly EvidenceTable[] }): ReactNode {
  return props.tables.map(({ label, columns, rows }) => (
    <section key={label}>
      <h4>{label}</h4>
      <div className="scroll-x">
        <PlainTable
          className="plain events"
          rows={rows}
          keyOf={({ cells }) => JSON.stringify(cells)}
          columns={[
            ...columns.map(
              (column, at): PlainColumn<EvidenceTable['rows'][number]> => ({
                label: column.label,
                isNumber: !isText(column.unit),
                className: column.unit === 'code' ? 'mono event-name' : '',
                title: ({ cells }) => {
                  const value = cells[at] ?? null;
                  return value === null ? 'not recorded' : quantityExact(value, column.unit);
                },
                cell: ({ cells }) => {
                  const value = cells[at] ?? null;
                  return value === null ? '–' : textOf(value, column.unit);
                },
              }),
            ),
            {
              label: <span className="visually-hidden">Link</span>,
              className: 'evidence-link',
              cell: ({ link }) => link && <EvidenceLink link={link} />,
            },
          ]}
        />
      </div>
    </section>
  ));
}

/** The damage to the trace that makes an outcome doubtful. */
export function Doubts({ doubts }: { readonly doubts: readonly string[] }): ReactNode {
  if (doubts.length === 0) return null;
  return (
    <p className="doubts flex">
      <Icon name="warning" size={15} />
      <span>
        <strong>Doubtful:</strong> it depends on damaged parts of the trace.{' '}
        <Prose text={doubts.map(sentence).join(' ')} /> <Goto to={{ view: 'health' }}>Health</Goto>
      </span>
    </p>
  );
}
