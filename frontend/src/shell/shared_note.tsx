import type { ReactNode } from 'react';
import { sharedFile } from '../api/shared_file';
import { Icon } from '../widgets/icon';
import { Menu } from '../widgets/menu';

/** What the shared file is, and what it leaves out. */
export default function SharedNote(): ReactNode {
  if (!sharedFile) return null;
  const { version, written, notes } = sharedFile;
  return (
    <Menu
      title="What this file holds"
      label={
        <>
          <Icon name="file" size={14} /> Shared file
        </>
      }
    >
      <p className="menu-note">
        Written on {written} by stepscope {version}. It loads nothing from a network.
      </p>
      {notes.map((note) => (
        <p key={note} className="menu-note note">
          {note}
        </p>
      ))}
      <p className="menu-note note">
        For everything else, open the trace with <code>stepscope serve</code> or TensorBoard.
      </p>
    </Menu>
  );
}
