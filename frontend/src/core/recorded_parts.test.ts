import { expect, it } from 'vitest';
import { workerReport } from '../../tests/samples';
import { lacking, withoutDevice } from './recorded_parts';

const flag = (name: string, code: string) => ({ flag: name, why: '', code });

it('says what was not recorded, and the argument that records it', () => {
  const report = workerReport({ record_next: [flag('memory', 'profile_memory=True')] });
  expect(lacking(report, 'memory')).toBe(
    'Allocations were not recorded: profile_memory=True records it',
  );
  expect(lacking(report, 'stacks')).toBeNull();
});

it('claims nothing before the advice is there', () => {
  expect(lacking(undefined, 'memory')).toBeNull();
  expect(withoutDevice(undefined)).toBeNull();
});

it('tells a device that was not recorded from one that was not used', () => {
  const unrecorded = workerReport({ record_next: [flag('device', 'activities=[…]')] });
  expect(withoutDevice(unrecorded)).toBe(
    'No work of a device was recorded: activities=[…] records it',
  );
  expect(withoutDevice(workerReport())).toBe('The program used no device');
});
