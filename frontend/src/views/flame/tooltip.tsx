/** What a frame says, beside the pointer. */
import { type ReactNode, useLayoutEffect, useRef } from 'react';
import { relativeChange } from '../../core/format';
import { kindColour } from './colours';
import {
  figuresOf,
  isSmaller,
  kindOf,
  type Layout,
  NONE,
  type Node,
  parentOf,
  type Side,
} from './layout';
import { amountOf, callsOf, changeWords, shareOf, wordsOf } from './words';

export interface TooltipPlace {
  readonly layout: Layout;
  readonly node: Node;
  readonly x: number;
  readonly y: number;
}

const APART_PX = 14;
const EDGE_PX = 8;

interface LineProps {
  readonly label: string;
  readonly children: ReactNode;
}

const Line = ({ label, children }: LineProps): ReactNode => (
  <div>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </div>
);

interface Props {
  readonly layout: Layout;
  readonly node: Node;
  readonly root: Node;
}

interface AgainstProps {
  readonly graph: Layout['graph'];
  readonly after: Side;
  readonly before: Side;
}

function Against({ graph, after, before }: AgainstProps): ReactNode {
  const { unit, is_per_step: isPerStep } = graph;
  const relative = relativeChange(before.total, after.total);
  return (
    <>
      <Line label="Before">{amountOf(before.total, unit, isPerStep)}</Line>
      <Line label="Change">
        <b>{changeWords(after.total - before.total, unit)}</b>
        {relative !== '' && ` (${relative})`}
      </Line>
      <Line label="Change of its own">{changeWords(after.own - before.own, unit)}</Line>
      <Line label={unit === 'bytes' ? 'Allocations' : 'Calls'}>
        {callsOf(after.calls, unit)}, before {callsOf(before.calls, unit)}
      </Line>
    </>
  );
}

/** The figures of a frame as a list of terms. */
export function Figures({ layout, node, root }: Props): ReactNode {
  const { graph, scale } = layout;
  const { unit, is_per_step: isPerStep } = graph;
  const figures = figuresOf(layout, node);
  const { total, own, calls, before } = figures;
  const parent = parentOf(layout, node);
  return (
    <dl className="flame-figures">
      <Line label="Total">
        <b>{amountOf(total, unit, isPerStep)}</b>, {shareOf(total, graph.whole / scale[0])} of all
      </Line>
      {!isSmaller(layout, node) && (
        <Line label="Its own">
          {amountOf(own, unit, isPerStep)}, {shareOf(own, total)} of it
        </Line>
      )}
      {parent !== NONE && (
        <Line label="Of the frame above">{shareOf(total, figuresOf(layout, parent).total)}</Line>
      )}
      {root !== NONE && root !== parent && root !== node && (
        <Line label="Of the picture">{shareOf(total, figuresOf(layout, root).total)}</Line>
      )}
      {before && <Against graph={graph} after={figures} before={before} />}
      {!before && calls > 0 && (
        <Line label={unit === 'bytes' ? 'Allocations' : 'Calls'}>{callsOf(calls, unit)}</Line>
      )}
    </dl>
  );
}

interface TooltipProps {
  readonly place: TooltipPlace;
  readonly root: Node;
}

export function Tooltip({ place, root }: TooltipProps): ReactNode {
  const { layout, node, x, y } = place;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current } = box;
    if (!current) return;
    const { offsetWidth: width, offsetHeight: height } = current;
    const isRight = x + APART_PX + width <= window.innerWidth - EDGE_PX;
    const isBelow = y + APART_PX + height <= window.innerHeight - EDGE_PX;
    current.style.left = `${Math.max(EDGE_PX, isRight ? x + APART_PX : x - APART_PX - width)}px`;
    current.style.top = `${Math.max(EDGE_PX, isBelow ? y + APART_PX : y - APART_PX - height)}px`;
  }, [x, y]);
  const kind = kindOf(layout, node);
  return (
    <div ref={box} className="flame-tooltip" aria-hidden="true">
      <p className="flame-name">{wordsOf(layout, node)}</p>
      <p className="flame-kind">
        <span className="flame-swatch" style={{ background: kindColour(kind) }} />
        {layout.graph.kinds.find(({ id }) => id === kind)?.label}
      </p>
      <Figures layout={layout} node={node} root={root} />
    </div>
  );
}
