import { describe, expect, it } from 'vitest';
import { HOME } from '../../state/location';
import { comparedRequest, requestOf, settingsOf } from './requests';

const settings = (options: Record<string, string>) => settingsOf({ ...HOME, options });
const given = (parameters: object): object =>
  Object.fromEntries(
    Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined),
  );
const NO_TIME = { narrowing: null, before: null };
const step = (start_ns: number) => ({ start_ns, end_ns: start_ns + 5, label: 'step' });

describe('a request', () => {
  it('defaults to host calls with merged instances', () => {
    expect(given(requestOf('graph', settings({}), NO_TIME).parameters)).toEqual({ by_class: true });
  });

  it('ignores unknown options', () => {
    expect(settings({ of: 'wishes', measure: '<b>', root: '%', frames: '' })).toEqual(settings({}));
  });

  it('is by pass for modules and by device for memory', () => {
    const { parameters } = requestOf(
      'graph',
      settings({ of: 'modules', measure: 'device', phase: 'backward', frames: 'user' }),
      NO_TIME,
    );
    expect(given(parameters)).toEqual({ subject: 'modules', measure: 'device', phase: 'backward' });
    const memory = settings({ of: 'memory', measure: 'device', device: 'CUDA 1', frames: 'user' });
    expect(given(requestOf('graph', memory, NO_TIME).parameters)).toEqual({
      subject: 'memory',
      device: 'CUDA 1',
      frames: 'user',
      by_class: true,
    });
  });

  it('is of one thread and without waits only for calls of the host', () => {
    const options = { thread: '1/8', waits: 'hidden', instances: 'apart' };
    const of = (more: Record<string, string>): object =>
      given(requestOf('graph', settings({ ...options, ...more }), NO_TIME).parameters);
    expect(of({})).toEqual({ thread: '1/8', without_waits: true });
    expect(of({ measure: 'device' })).toEqual({ thread: '1/8', measure: 'device' });
    expect(of({ of: 'modules' })).toEqual({ subject: 'modules' });
    expect(of({ of: 'memory' })).toEqual({ subject: 'memory' });
  });

  it('for functions has no root frame', () => {
    const some = settings({
      root: 'a.b',
      name: 'aten::mm',
      direction: 'callers',
      instances: 'apart',
    });
    expect(given(requestOf('functions', some, NO_TIME).parameters)).toEqual({});
    expect(given(requestOf('graph', some, NO_TIME).parameters)).toEqual({
      root: 'a.b',
      name: 'aten::mm',
      direction: 'callers',
    });
  });

  it('for a time range is not per step', () => {
    const some = settings({ per: 'step', instances: 'apart' });
    expect(given(requestOf('graph', some, NO_TIME).parameters)).toEqual({ per_step: true });
    const times = { narrowing: step(10), before: step(5) };
    expect(given(requestOf('graph', some, times).parameters)).toEqual({
      start_ns: 10,
      end_ns: 15,
      before_start_ns: 5,
      before_end_ns: 10,
    });
  });

  it('for two traces names both', () => {
    const some = settings({ of: 'modules', root: 'a' });
    const { path, parameters } = comparedRequest('graph', some, { trace: 'x', baseline: 'y' });
    expect(path).toBe('flame/compared/modules/graph');
    expect(given(parameters)).toEqual({ trace: 'x', baseline: 'y', root: 'a' });
  });
});
