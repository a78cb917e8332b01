import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { RequestError } from '../../api/client';
import { useTraceQuery } from '../../api/queries';
import type { WhatIfNames, WhatIfStep } from '../../api/types.gen';
import { sentence } from '../../core/sentence';
import { useNavigation } from '../../state/navigation';
import { useChangeOptions } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Button } from '../../widgets/button';
import { Card } from '../../widgets/card';
import { Code } from '../../widgets/code';
import { Copy } from '../../widgets/copy';
import { Empty } from '../../widgets/empty';
import { Failure } from '../../widgets/failure';
import { Icon } from '../../widgets/icon';
import { Skeleton } from '../../widgets/loaded';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import {
  type Changes,
  changesOf,
  commandOf,
  isUnchanged,
  optionsOf,
  parametersOf,
  UNCHANGED,
  withScale,
} from './changes';
import { Count, Factor } from './factor';
import { Findings } from './findings';
import { OpenSimulated } from './open_simulated';
import { Result } from './result';
import { AddScale, ScaleList } from './scales';
import { StepTimeline } from './timeline';
import '../../widgets/table/table.css';
import './whatif.css';

type Apply = (changes: Changes) => void;

interface ControlsProps {
  readonly changes: Changes;
  readonly names: WhatIfNames | undefined;
  readonly step: WhatIfStep | undefined;
  readonly apply: Apply;
}

function Machine({ changes, names, apply }: ControlsProps): ReactNode {
  const hasDevice = names === undefined || names.kernels.all_count > 0;
  const hasWaits = names === undefined || names.wait_count > 0;
  return (
    <Card title="Host and devices" label="Host and devices">
      <Factor
        label="Host time"
        value={changes.host}
        onChange={(host) => apply({ ...changes, host })}
      />
      <Factor
        label="Device time"
        value={changes.device}
        onChange={(device) => apply({ ...changes, device })}
        disabledBecause={hasDevice ? undefined : 'no work of a device was recorded'}
      />
      <label className="whatif-check option">
        <input
          type="checkbox"
          checked={changes.hasNoWaits}
          disabled={!hasWaits && !changes.hasNoWaits}
          onChange={(event) => apply({ ...changes, hasNoWaits: event.target.checked })}
        />
        <span>
          The host never waits for a device
          <small className="whatif-hint">
            {hasWaits ? 'No .item(), synchronize() or blocking copy' : 'No such call was recorded'}
          </small>
        </span>
      </label>
    </Card>
  );
}

function Loading({ changes, names, apply }: ControlsProps): ReactNode {
  const isShown = changes.workers !== null || changes.cores !== null;
  if (!isShown && !names?.batch_count) return null;
  return (
    <Card title="Data loading" label="Data loading">
      <div className="whatif-counts">
        <Count
          label="Worker processes"
          value={changes.workers}
          onChange={(workers) => apply({ ...changes, workers })}
        />
        <Count
          label="CPU cores"
          value={changes.cores}
          onChange={(cores) => apply({ ...changes, cores })}
        />
      </div>
    </Card>
  );
}

function Scales({ changes, names, step, apply }: ControlsProps): ReactNode {
  const matches = step?.matches.length === changes.scales.length ? step.matches : [];
  return (
    <Card title="Operators and kernels" label="Operators and kernels">
      <ScaleList
        scales={changes.scales}
        matches={matches}
        onChange={(scales) => apply({ ...changes, scales })}
      />
      {names && (
        <AddScale
          names={names}
          onAdd={(target, pattern) => apply(withScale(changes, target, pattern))}
        />
      )}
    </Card>
  );
}

interface Example {
  readonly label: string;
  readonly change: Partial<Changes>;
}

function examplesFor(names: WhatIfNames): readonly Example[] {
  const faster: Example = { label: 'Host 30 % faster', change: { host: 0.7 } };
  if (names.kernels.all_count === 0) return [faster];
  return [
    faster,
    { label: 'Devices twice as fast', change: { device: 0.5 } },
    { label: 'Devices take no time', change: { device: 0 } },
    ...(names.batch_count > 0 ? [{ label: '4 loader workers', change: { workers: 4 } }] : []),
    ...(names.wait_count > 0 ? [{ label: 'No waits', change: { hasNoWaits: true } }] : []),
  ];
}

interface ExamplesProps {
  readonly names: WhatIfNames;
  readonly apply: Apply;
}

function Examples({ names, apply }: ExamplesProps): ReactNode {
  return (
    <div className="wrap">
      <span className="muted">Try:</span>
      {examplesFor(names).map(({ label, change }) => (
        <Button key={label} small onClick={() => apply({ ...UNCHANGED, ...change })}>
          {label}
        </Button>
      ))}
    </div>
  );
}

interface RefusedProps {
  readonly query: UseQueryResult<WhatIfStep>;
  readonly changes: Changes;
}

/** The trace cannot be simulated, or a change cannot be applied to it. */
function Refused({ query, changes }: RefusedProps): ReactNode {
  const { error } = query;
  if (error instanceof RequestError && error.code === 'not-recorded') {
    const isOfLoading = changes.workers !== null;
    return (
      <Empty
        icon="info"
        title={isOfLoading ? 'Workers cannot be simulated' : 'This trace cannot be simulated'}
      >
        <p>{sentence(error.message)}</p>
        {isOfLoading && <p>Change or clear the numbers under “Data loading”.</p>}
        {error.hint !== '' && (
          <>
            <p>A trace recorded in this way may be simulated:</p>
            <Code code={error.hint} />
          </>
        )}
      </Empty>
    );
  }
  if (error instanceof RequestError && error.code === 'bad-request') {
    return (
      <Empty icon="warning" title="A change does not apply to this trace">
        <p>{sentence(error.message)}</p>
        <p>Remove it, or reset all changes.</p>
      </Empty>
    );
  }
  return error ? (
    <Failure error={error} what="The prediction" retry={() => void query.refetch()} />
  ) : (
    <Skeleton />
  );
}

const traceNameOf = ({ run, worker, span }: Selection): readonly string[] => [
  run.name,
  worker.name,
  span.label,
];

export default function Page({ selection }: PageProps): ReactNode {
  const { span } = selection;
  const { location } = useNavigation();
  const changeOptions = useChangeOptions();
  const changes = changesOf(location.options);
  const apply: Apply = (next) => changeOptions(optionsOf(next));
  const names = useTraceQuery(span.trace, 'what-if/names').data;
  const parameters = parametersOf(changes);
  const query = useTraceQuery(span.trace, 'what-if', parameters);
  const step = query.data;
  const controls: ControlsProps = { changes, names, step, apply };
  return (
    <div className="page stack">
      <ViewHeader title="What if" note="The recorded steps, simulated with changes">
        {!isUnchanged(changes) && (
          <>
            <Copy text={() => commandOf(changes, span.file)} label="Copy command" />
            <Button onClick={() => apply(UNCHANGED)}>
              <Icon name="undo" size={15} /> Reset
            </Button>
          </>
        )}
      </ViewHeader>
      <div className="whatif">
        <div className="stack">
          <Findings
            trace={span.trace}
            parameters={parameters}
            isWaiting={query.isFetching}
            totalNs={step?.recorded_ns}
            onChange={(fixes) => apply({ ...changes, fixes })}
          />
          <Machine {...controls} />
          <Loading {...controls} />
          <Scales {...controls} />
        </div>
        <div className="stack">
          {step ? (
            <Result
              step={step}
              traceName={traceNameOf(selection)}
              isStale={query.isPlaceholderData}
              actions={
                import.meta.env.MODE !== 'shared' && (
                  <OpenSimulated selection={selection} parameters={parameters} />
                )
              }
            >
              {isUnchanged(changes) && names && <Examples names={names} apply={apply} />}
            </Result>
          ) : (
            <Refused query={query} changes={changes} />
          )}
          {step && (
            <StepTimeline trace={span.trace} parameters={parameters} isWaiting={query.isFetching} />
          )}
        </div>
      </div>
    </div>
  );
}
