import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { tileSource } from '../../../tests/timeline_tiles';
import { type DragMode, dragKind, type Gestures, listen, type Press } from './gestures';
import { layoutOf } from './layout';
import { TileStore } from './tile_store';
import { Viewer } from './viewer';
import type { Track } from './wire';

const press = (patch: Partial<Press> = {}): Press => ({
  button: 0,
  shiftKey: false,
  pointerType: 'mouse',
  ...patch,
});

describe('dragging', () => {
  it('selects or pans as set, and the other with Shift', () => {
    expect(dragKind(press(), 'select', false)).toBe('select');
    expect(dragKind(press(), 'pan', false)).toBe('pan');
    expect(dragKind(press({ shiftKey: true }), 'select', false)).toBe('pan');
    expect(dragKind(press({ shiftKey: true }), 'pan', false)).toBe('select');
  });

  it('pans with the middle button, a held space bar or a finger', () => {
    expect(dragKind(press({ button: 1 }), 'select', false)).toBe('pan');
    expect(dragKind(press(), 'select', true)).toBe('pan');
    expect(dragKind(press({ pointerType: 'touch' }), 'select', false)).toBe('pan');
  });
});

const TRACKS: Track[] = [0, 1, 2].map((id) => ({
  id,
  parent: null,
  kind: 'thread',
  label: `track ${id}`,
  detail: '',
  row_count: 1,
  event_count: 1,
  busy_ns: 0,
  order: id,
  unit: '',
  is_open: true,
}));
const NOTHING = { pinned: [], toggled: [], hidden: [], kinds: [], filter: '', order: [] };

describe('on the canvas', () => {
  const ended: (() => void)[] = [];
  let canvas: HTMLCanvasElement;
  let viewer: Viewer;
  const gestures = {
    dragMode: 'select' as DragMode,
    click: vi.fn<Gestures['click']>(),
    doubleClick: vi.fn<Gestures['doubleClick']>(),
    area: vi.fn<Gestures['area']>(),
    scrollBy: vi.fn<Gestures['scrollBy']>(),
  };
  const pointer = (type: string, x: number, y: number, init: PointerEventInit = {}): void => {
    const given = { clientX: x, clientY: y, pointerId: 1, bubbles: true, cancelable: true };
    canvas.dispatchEvent(new PointerEvent(type, { ...given, ...init }));
  };
  const drag = (init: PointerEventInit = {}): void => {
    pointer('pointerdown', 250, 30, init);
    pointer('pointermove', 400, 40, init);
    pointer('pointermove', 750, 60, init);
    pointer('pointerup', 750, 60, init);
  };

  beforeEach(() => {
    vi.clearAllMocks();
    canvas = document.body.appendChild(document.createElement('canvas'));
    canvas.setPointerCapture = () => undefined;
    const store = new TileStore(tileSource([]), () => undefined);
    viewer = new Viewer({ start: 0, end: 1_000_000 }, store, { start: 0, end: 100_000 });
    viewer.setLayout(layoutOf({ tracks: TRACKS }, NOTHING));
    viewer.setSize(1000, 300);
    ended.push(listen(viewer, canvas, () => gestures));
  });
  afterEach(() => {
    for (const end of ended.splice(0)) end();
    canvas.remove();
    viewer.dispose();
  });

  it('a drag selects a time range of the tracks that it crosses', () => {
    pointer('pointerdown', 250, 30);
    pointer('pointermove', 750, 60);
    expect(viewer.draft).toEqual({ start: 25_000, end: 75_000, tracks: [1, 2] });
    expect(viewer.pointer).toBeNull();
    expect(gestures.area).not.toHaveBeenCalled();
    pointer('pointerup', 750, 60);
    expect(gestures.area).toHaveBeenCalledExactlyOnceWith({
      start: 25_000,
      end: 75_000,
      tracks: [1, 2],
    });
    expect(viewer.draft).toBeNull();
    expect(viewer.view).toEqual({ start: 0, end: 100_000 });
  });

  it('a press without a move is a click, of the left button only', () => {
    for (const button of [0, 1]) {
      pointer('pointerdown', 250, 30, { button });
      pointer('pointerup', 251, 30, { button });
    }
    expect(gestures.click).toHaveBeenCalledExactlyOnceWith({ x: 251, y: 30 });
    expect(gestures.area).not.toHaveBeenCalled();
  });

  it('a held space bar pans until it is released', () => {
    viewer.show({ start: 500_000, end: 600_000 });
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }));
    expect(canvas.classList.contains('can-pan')).toBe(true);
    drag();
    expect(viewer.view.start).toBeCloseTo(450_000, 0);
    expect(gestures.area).not.toHaveBeenCalled();
    expect(gestures.click).not.toHaveBeenCalled();
    document.body.dispatchEvent(new KeyboardEvent('keyup', { key: ' ', bubbles: true }));
    drag();
    expect(gestures.area).toHaveBeenCalledTimes(1);
  });

  it('the space bar on a button presses that', () => {
    const button = document.body.appendChild(document.createElement('button'));
    const event = new KeyboardEvent('keydown', { key: ' ', bubbles: true, cancelable: true });
    button.dispatchEvent(event);
    expect(event.defaultPrevented).toBe(false);
    expect(canvas.classList.contains('can-pan')).toBe(false);
    button.remove();
  });

  it('the middle button pans', () => {
    viewer.show({ start: 500_000, end: 600_000 });
    drag({ button: 1 });
    expect(viewer.view.start).toBeCloseTo(450_000, 0);
    expect(gestures.scrollBy).toHaveBeenCalled();
  });
});
