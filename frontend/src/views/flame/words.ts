/** How frames are written: short names on the graph, whole ones beside it. Pure. */
import { change, count, plural, quantity, share } from '../../core/format';
import { shortName } from '../../core/names';
import type { Unit } from '../../core/units';
import { figuresOf, isSmaller, type Layout, type Node, nameOf, type Side } from './layout';

const PYTHON = /^(\S[^\n]*)\((\d{1,9})\): (.+)$/s;

export interface PythonPlace {
  readonly path: string;
  readonly line: number;
  readonly of: string;
}

/** The file, the line and the name of a Python function: `train.py(7): main`. */
export function pythonPlace(name: string): PythonPlace | null {
  const found = PYTHON.exec(name);
  if (!found) return null;
  return { path: found[1] ?? '', line: Number(found[2]), of: found[3] ?? '' };
}

const BUILT_IN = /^<built-in (?:method|function) (.+?)(?: of (.+?)(?: object)?)?>$/;

/** A name as it stands on a frame: what tells it from others comes first. */
export function frameName(name: string): string {
  const place = pythonPlace(name);
  if (place) return `${place.of} · ${place.path.split(/[/\\]/).slice(-2).join('/')}:${place.line}`;
  const builtIn = BUILT_IN.exec(name);
  if (builtIn) return builtIn[2] ? `${builtIn[1]} · ${builtIn[2]}` : (builtIn[1] ?? name);
  return shortName(name.replace(/^nn\.Module: /, ''));
}

export const smallerWords = (layout: Layout, node: Node): string =>
  plural(layout.graph.merged_count[node] ?? 0, 'smaller frame');

export const wordsOf = (layout: Layout, node: Node): string =>
  isSmaller(layout, node) ? smallerWords(layout, node) : nameOf(layout, node);

/** Parts of a nanosecond, which dividing by steps makes, say nothing. */
export const whole = (value: number): number => Math.round(value);

/** A value, and that it is of one step. */
export const amountOf = (value: number, unit: Unit, isPerStep: boolean): string =>
  quantity(whole(value), unit) + (isPerStep ? ' a step' : '');

export const changeWords = (delta: number, unit: Unit): string => change(whole(delta), unit);

export const shareOf = (part: number, all: number): string => (all > 0 ? share(part / all) : '–');

/** A function that is known from the stacks of others alone has time, and no calls that were counted. */
export const callsKnown = ({ calls, total }: Omit<Side, 'own'>, unit: Unit): boolean =>
  unit === 'bytes' || calls > 0 || total === 0;

export const callsOf = (calls: number, unit: Unit): string =>
  unit === 'bytes'
    ? plural(calls, 'allocation')
    : `${count(calls)} ${calls === 1 ? 'call' : 'calls'}`;

/** A frame for who hears it. */
export function spokenOf(layout: Layout, node: Node): string {
  const { graph } = layout;
  const { total, own, before } = figuresOf(layout, node);
  const value = amountOf(total, graph.unit, graph.is_per_step);
  const part = shareOf(total, graph.whole / layout.scale[0]);
  const changed = before ? `, ${changeWords(total - before.total, graph.unit)} against before` : '';
  const itself = amountOf(own, graph.unit, graph.is_per_step);
  return `${wordsOf(layout, node)}: ${value}, ${part} of all, its own ${itself}${changed}`;
}
