/** The values of a frame, and the tooltip at the pointer. */
import { type ReactNode, useLayoutEffect, useRef } from 'react';
import { relativeChange } from '../../core/format';
import { useTheme } from '../../host/theme';
import { type Fact, Facts } from '../../widgets/facts';
import { kindColour } from './colours';
import { amountOf, callsOf, changeLabel, nodeLabel, shareOf } from './labels';
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

export interface TooltipAnchor {
  readonly layout: Layout;
  readonly node: Node;
  readonly x: number;
  readonly y: number;
}

const APART_PX = 14;
const EDGE_PX = 8;

interface Props {
  readonly layout: Layout;
  readonly node: Node;
  readonly root: Node;
}

function changesOf({ graph }: Layout, after: Side, before: Side): Fact[] {
  const { unit, is_per_step: isPerStep } = graph;
  const relative = relativeChange(before.total, after.total);
  return [
    ['Before', amountOf(before.total, unit, isPerStep)],
    [
      'Change',
      <span key="change">
        <b>{changeLabel(after.total - before.total, unit)}</b>
        {relative !== '' && ` (${relative})`}
      </span>,
    ],
    ['Self change', changeLabel(after.own - before.own, unit)],
    [
      unit === 'bytes' ? 'Allocations' : 'Calls',
      `${callsOf(after.calls, unit)}, before ${callsOf(before.calls, unit)}`,
    ],
  ];
}

/** The values of a frame. */
export function Figures({ layout, node, root }: Props): ReactNode {
  const { graph, scale } = layout;
  const { unit, is_per_step: isPerStep } = graph;
  const figures = figuresOf(layout, node);
  const { total, own, calls, before } = figures;
  const parent = parentOf(layout, node);
  const partOf = (other: Node): string => shareOf(total, figuresOf(layout, other).total);
  const facts: Fact[] = [
    [
      'Total',
      <span key="total">
        <b>{amountOf(total, unit, isPerStep)}</b>, {shareOf(total, graph.whole / scale[0])} of all
      </span>,
    ],
    !isSmaller(layout, node) && [
      'Self',
      `${amountOf(own, unit, isPerStep)}, ${shareOf(own, total)} of it`,
    ],
    parent !== NONE && ['Of the caller', partOf(parent)],
    root !== NONE && root !== parent && root !== node && ['Of the zoomed frame', partOf(root)],
    ...(before ? changesOf(layout, figures, before) : []),
    !before && calls > 0 && [unit === 'bytes' ? 'Allocations' : 'Calls', callsOf(calls, unit)],
  ];
  return <Facts className="flame-figures facts" facts={facts} />;
}

interface TooltipProps {
  readonly anchor: TooltipAnchor;
  readonly root: Node;
}

export function Tooltip({ anchor, root }: TooltipProps): ReactNode {
  const { layout, node, x, y } = anchor;
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
  const theme = useTheme();
  return (
    <div ref={box} className="flame-tooltip tip popup" aria-hidden="true">
      <p className="flame-name clamped">{nodeLabel(layout, node)}</p>
      <p className="flame-kind flex note">
        <span className="swatch" style={{ background: kindColour(kind, theme) }} />
        {layout.graph.kinds.find(({ id }) => id === kind)?.label}
      </p>
      <Figures layout={layout} node={node} root={root} />
    </div>
  );
}
