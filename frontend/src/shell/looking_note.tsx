import type { ReactNode } from 'react';
import type { Runs } from '../api/types.gen';
import { count, plural } from '../core/format';
import { Icon } from '../widgets/icon';
import { Menu } from '../widgets/menu';
import { ChangeButton } from '../widgets/reading/change_button';

/** That more runs may be found, while runs are there already; and how to end that. */
export function LookingNote({ runs }: { readonly runs: Runs }): ReactNode {
  const { scanning, is_cancelled, looked_at_count, runs: found } = runs;
  if (found.length === 0 || !(scanning || is_cancelled)) return null;
  return (
    <Menu
      title={scanning ? 'Still looking for traces' : 'Looking for traces was stopped'}
      label={
        <span className="flex">
          <Icon name="search" size={14} />
          {scanning ? `${count(looked_at_count)} looked at` : 'not all looked at'}
        </span>
      }
    >
      <div className="all-reading">
        <p>
          {plural(looked_at_count, 'file')} looked at in {runs.logdir},{' '}
          {plural(found.length, 'run')} found.
        </p>
        {scanning ? (
          <ChangeButton change={{ what: 'cancel', of: 'listing' }} about="looking for traces">
            Stop looking
          </ChangeButton>
        ) : (
          <ChangeButton change={{ what: 'read', of: 'listing' }} about="for traces">
            Look on
          </ChangeButton>
        )}
      </div>
    </Menu>
  );
}
