import { type ReactNode, useMemo } from 'react';
import { useRunQuery } from '../../api/queries';
import type { MemoryFile, MemoryFileCurve, MemoryFileReport } from '../../api/types.gen';
import type { Line } from '../../charts/time_series_types';
import { MEMORY_COLOURS } from '../../core/colour';
import { bytes, count } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { useOption, withOptions } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Empty } from '../../widgets/empty';
import { Loaded } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { Segmented } from '../../widgets/segmented';
import { StackList } from '../../widgets/stack_list';
import { DataTable } from '../../widgets/table';
import { cellOf } from '../../widgets/table/rows';
import { AXIS_FORMAT, LegendKey, MemoryChart } from './chart';

const COLOURS: Readonly<Record<string, string>> = {
  ...MEMORY_COLOURS,
  requested: MEMORY_COLOURS.allocated,
};
const HEIGHT = 210;

const colourOf = (id: string): string => COLOURS[id] ?? MEMORY_COLOURS.unknown;

function linesOf(curve: MemoryFileCurve): Line[] {
  return curve.lines.map((line) => ({
    id: line.id,
    label: line.label,
    colour: colourOf(line.id),
    values: line.bytes,
    holds: true,
    ...(curve.is_stacked ? { stack: 'all' } : { isFilled: line.id === 'requested' }),
  }));
}

function FileChart({ curve }: { readonly curve: MemoryFileCurve }): ReactNode {
  const lines = useMemo(() => linesOf(curve), [curve]);
  const axes = useMemo(
    () =>
      curve.is_in_time
        ? AXIS_FORMAT
        : { ...AXIS_FORMAT, tickX: count, x: (value: number) => `Entry ${count(value)}` },
    [curve],
  );
  return (
    <figure className="memory-file-chart">
      <figcaption className="memory-legend wrap">
        <strong>{curve.title}</strong>
        {curve.lines.map(({ id, label, help }) => (
          <LegendKey key={id} label={label} title={help} colour={colourOf(id)} />
        ))}
        {!curve.is_in_time && <span className="muted">times not recorded</span>}
      </figcaption>
      <MemoryChart xs={curve.at} lines={lines} words={axes} label={curve.title} height={HEIGHT} />
    </figure>
  );
}

interface ReportProps {
  readonly report: MemoryFileReport;
  readonly selection: Selection;
  readonly isStale: boolean;
}

function Report({ report, selection, isStale }: ReportProps): ReactNode {
  const names = report.tables.map((_, at) => String(at));
  const [selected, choose] = useOption('table', '0', names);
  const { location, go } = useNavigation();
  const table = report.tables[Number(selected)];
  const pick = (at: string): void => {
    choose(at);
    const options = withOptions(location.options, { row: null, table: at });
    go({ search: '', sort: null, options }, 'replace');
  };
  return (
    <>
      <div className="memory-growth">
        {report.summary.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
        {report.curves.map((curve) => (
          <FileChart key={curve.title} curve={curve} />
        ))}
      </div>
      <div className="memory-bar wrap" hidden={report.tables.length < 2}>
        <Segmented
          label="Table"
          segments={report.tables.map(({ title }, at) => ({ id: String(at), label: title }))}
          value={selected}
          onChoose={pick}
        />
      </div>
      {table && (
        <div className="memory-leaks column">
          <DataTable
            key={selected}
            table={table}
            name={`memory-file-${report.what}-${selected}`}
            label={table.title}
            traceName={[selection.run.name, report.name]}
            isStale={isStale}
            details={(at) => {
              const stack = cellOf(table, 'stack', at);
              return typeof stack === 'string' ? <StackList stack={stack} /> : null;
            }}
          />
        </div>
      )}
    </>
  );
}

interface FileProps {
  readonly file: MemoryFile;
  readonly selection: Selection;
}

function FileReport({ file, selection }: FileProps): ReactNode {
  const { run } = selection;
  const query = useRunQuery(run, 'runs/{run}/memory-files/{file}', { file: file.id });
  if (file.problem !== '') {
    return (
      <div className="memory-growth">
        <Empty icon="warning" title={`${file.name} cannot be read`}>
          <p>{file.problem}</p>
        </Empty>
      </div>
    );
  }
  return (
    <Loaded query={query} what={file.name}>
      {(report) => (
        <Report report={report} selection={selection} isStale={query.isPlaceholderData} />
      )}
    </Loaded>
  );
}

const KINDS = { snapshot: 'snapshot', timeline: 'timeline' } as const;

/** The memory snapshots and timelines in the folder of the run. */
export function Files({ selection }: { readonly selection: Selection }): ReactNode {
  const { location, go } = useNavigation();
  const { run } = selection;
  const query = useRunQuery(run, 'runs/{run}/memory-files');
  return (
    <div className="memory-part column grow memory-scroll">
      <Loaded query={query} what="Memory files">
        {({ files }) => {
          const file = files.find(({ id }) => id === location.options.file) ?? files[0];
          if (!file) return null;
          return (
            <>
              <div className="memory-bar wrap">
                <Picker
                  label="File"
                  choices={files.map(({ id, name, what, file_bytes }) => ({
                    key: id,
                    label: name,
                    note: `${KINDS[what]}, ${bytes(file_bytes)}`,
                  }))}
                  value={file.id}
                  onChoose={(id) => {
                    const changes = { row: null, table: null, file: id };
                    const options = withOptions(location.options, changes);
                    go({ search: '', sort: null, options });
                  }}
                />
                <span className="muted">
                  {file.what === 'snapshot'
                    ? 'A snapshot of the CUDA allocator'
                    : 'A memory timeline'}
                  , {bytes(file.file_bytes)}
                </span>
              </div>
              <FileReport key={file.id} file={file} selection={selection} />
            </>
          );
        }}
      </Loaded>
    </div>
  );
}
