import type { ReactNode } from 'react';
import type { Evidence, EvidenceTable, Link } from '../../api/types.gen';
import { quantity, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { SourceLine } from '../../widgets/source_line';
import { usePlace } from './place';

type Cell = EvidenceTable['rows'][number]['cells'][number];
type Unit = Evidence['unit'];

const words = (value: Exclude<Cell, null>, unit: Unit): string => {
  const text = quantity(value, unit);
  return unit === 'code' ? shortName(text) : text;
};

const isText = (unit: Unit): boolean => unit === 'text' || unit === 'code';

/** A Python frame as the profiler writes it: `train.py(12): forward`. */
const FRAME = /^(.+?)\((\d{1,9})\): (.*)$/;

/** Leads to where a piece of evidence is seen, and to its line of the program. */
function Where({ link }: { readonly link: Link }): ReactNode {
  const place = usePlace()(link);
  const [, path, line, of] = FRAME.exec(link.source ?? '') ?? [];
  return (
    <span className="where">
      {path !== undefined && <SourceLine path={path} line={Number(line)} of={of} />}
      <Goto to={place}>
        {place.view}
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
        {words(row.value, row.unit)}
      </td>
      <td className="evidence-link">{row.link && <Where link={row.link} />}</td>
    </tr>
  );
}

/** Measured facts, each with its unit and where to see it. */
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

function TableCell({ value, unit }: { readonly value: Cell; readonly unit: Unit }): ReactNode {
  const kind = isText(unit) ? (unit === 'code' ? 'mono event-name' : '') : 'number';
  if (value === null) {
    return (
      <td className={kind} title="not known">
        –
      </td>
    );
  }
  return (
    <td className={kind} title={quantityExact(value, unit)}>
      {words(value, unit)}
    </td>
  );
}

/** What a finding is made of: kernels, operators, source lines, ranks; the worst first. */
export function EvidenceTables({
  tables,
}: {
  readonly tables: readonly EvidenceTable[];
}): ReactNode {
  return tables.map((table) => (
    <section key={table.label}>
      <h4>{table.label}</h4>
      <div className="scroll-x">
        <table className="plain events">
          <thead>
            <tr>
              {table.columns.map((column) => (
                <th key={column.label} scope="col" className={isText(column.unit) ? '' : 'number'}>
                  {column.label}
                </th>
              ))}
              <th>
                <span className="visually-hidden">Where to see it</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row) => (
              <tr key={JSON.stringify(row.cells)}>
                {table.columns.map((column, at) => (
                  <TableCell key={column.label} value={row.cells[at] ?? null} unit={column.unit} />
                ))}
                <td className="evidence-link">{row.link && <Where link={row.link} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  ));
}
