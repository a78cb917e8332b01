/** Commands of the mounted components, listed in the palette. */
import { useEffect, useRef } from 'react';

export interface Command {
  readonly id: string;
  readonly label: string;
  readonly note?: string | undefined;
  readonly run: () => void;
}

let offered: readonly Command[] = [];

export const offeredCommands = (): readonly Command[] => offered;

/** Registers commands while the component is mounted. */
export function useCommands(commands: readonly Command[]): void {
  const latest = useRef(commands);
  latest.current = commands;
  const ids = commands.map(({ id, label }) => `${id} ${label}`).join('\n');
  // biome-ignore lint/correctness/useExhaustiveDependencies: offered anew where other commands are; what they do is read when they are run
  useEffect(() => {
    const added = latest.current.map((command) => ({
      ...command,
      run: () => latest.current.find(({ id }) => id === command.id)?.run(),
    }));
    offered = [...offered, ...added];
    return () => {
      offered = offered.filter((command) => !added.includes(command));
    };
  }, [ids]);
}
