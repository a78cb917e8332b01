/** What can be done right now, offered by whatever is on the page: the palette lists it. */
import { useEffect, useRef } from 'react';

export interface Command {
  /** Unique on the page. */
  readonly id: string;
  readonly label: string;
  readonly note?: string | undefined;
  readonly run: () => void;
}

let offered: readonly Command[] = [];

export const offeredCommands = (): readonly Command[] => offered;

/** Offers commands for as long as the component is on the page. */
export function useCommands(commands: readonly Command[]): void {
  const latest = useRef(commands);
  latest.current = commands;
  const ids = commands.map(({ id, label }) => `${id} ${label}`).join('\n');
  // biome-ignore lint/correctness/useExhaustiveDependencies: offered anew where other commands are; what they do is read when they are run
  useEffect(() => {
    const own = latest.current.map((command) => ({
      ...command,
      run: () => latest.current.find(({ id }) => id === command.id)?.run(),
    }));
    offered = [...offered, ...own];
    return () => {
      offered = offered.filter((each) => !own.includes(each));
    };
  }, [ids]);
}
