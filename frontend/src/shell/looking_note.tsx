import type { ReactNode } from 'react';
import type { Runs } from '../api/types.gen';
import { count, plural } from '../core/format';
import { Icon } from '../widgets/icon';
import { Menu } from '../widgets/menu';
import { ChangeButton } from '../widgets/reading/change_button';

/** A note that the scan is not complete, with a button to stop it. */
export function LookingNote({ runs }: { readonly runs: Runs }): ReactNode {
  const { scanning, is_cancelled, looked_at_count, runs: list } = runs;
  if (list.length === 0 || !(scanning || is_cancelled)) return null;
  return (
    <Menu
      title={scanning ? 'Scanning for traces' : 'The scan for traces was stopped'}
      label={
        <span className="flex">
          <Icon name="search" size={14} />
          {scanning ? `${count(looked_at_count)} scanned` : 'scan stopped'}
        </span>
      }
    >
      <div className="all-reading">
        <p>
          {plural(looked_at_count, 'file')} scanned in {runs.logdir}, {plural(list.length, 'run')}{' '}
          found.
        </p>
        {scanning ? (
          <ChangeButton change={{ what: 'cancel', of: 'listing' }} about="scanning for traces">
            Stop scanning
          </ChangeButton>
        ) : (
          <ChangeButton change={{ what: 'read', of: 'listing' }} about="the scan">
            Continue
          </ChangeButton>
        )}
      </div>
    </Menu>
  );
}
