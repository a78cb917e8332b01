/** Texts for frames: short names on the graph, full ones in the details. Pure. */
import { change, count, plural, quantity, share } from '../../core/format';
import { shortName } from '../../core/names';
import type { Unit } from '../../core/units';
import { figuresOf, isSmaller, type Layout, type Node, nameOf, type Side } from './layout';

const PYTHON = /^(\S[^\n]*)\((\d{1,9})\): (.+)$/s;

export interface PythonLocation {
  readonly path: string;
  readonly line: number;
  readonly of: string;
}

/** The file, the line and the name of a Python function: `train.py(7): main`. */
export function pythonLocation(name: string): PythonLocation | null {
  const match = PYTHON.exec(name);
  if (!match) return null;
  return { path: match[1] ?? '', line: Number(match[2]), of: match[3] ?? '' };
}

const BUILT_IN = /^<built-in (?:method|function) (.+?)(?: of (.+?)(?: object)?)?>$/;

/** The name on a frame, with the distinctive part first. */
export function frameName(name: string): string {
  const location = pythonLocation(name);
  if (location)
    return `${location.of} · ${location.path.split(/[/\\]/).slice(-2).join('/')}:${location.line}`;
  const builtIn = BUILT_IN.exec(name);
  if (builtIn) return builtIn[2] ? `${builtIn[1]} · ${builtIn[2]}` : (builtIn[1] ?? name);
  return shortName(name.replace(/^nn\.Module: /, ''));
}

export const mergedLabel = (layout: Layout, node: Node): string =>
  plural(layout.graph.merged_count[node] ?? 0, 'narrow frame');

export const nodeLabel = (layout: Layout, node: Node): string =>
  isSmaller(layout, node) ? mergedLabel(layout, node) : nameOf(layout, node);

/** Rounds the fractions that division by steps leaves. */
export const whole = (value: number): number => Math.round(value);

/** A value, with “per step” if it is one. */
export const amountOf = (value: number, unit: Unit, isPerStep: boolean): string =>
  quantity(whole(value), unit) + (isPerStep ? ' per step' : '');

export const changeLabel = (delta: number, unit: Unit): string => change(whole(delta), unit);

export const shareOf = (part: number, all: number): string => (all > 0 ? share(part / all) : '–');

/** A function that appears only in the stacks of others has time, but no counted calls. */
export const hasCallCount = ({ calls, total }: Omit<Side, 'own'>, unit: Unit): boolean =>
  unit === 'bytes' || calls > 0 || total === 0;

export const callsOf = (calls: number, unit: Unit): string =>
  unit === 'bytes'
    ? plural(calls, 'allocation')
    : `${count(calls)} ${calls === 1 ? 'call' : 'calls'}`;

/** A frame as text, for screen readers. */
export function announcementOf(layout: Layout, node: Node): string {
  const { graph } = layout;
  const { total, own, before } = figuresOf(layout, node);
  const value = amountOf(total, graph.unit, graph.is_per_step);
  const part = shareOf(total, graph.whole / layout.scale[0]);
  const changed = before
    ? `, ${changeLabel(total - before.total, graph.unit)} compared with the baseline`
    : '';
  const self = amountOf(own, graph.unit, graph.is_per_step);
  return `${nodeLabel(layout, node)}: ${value}, ${part} of all, self ${self}${changed}`;
}
