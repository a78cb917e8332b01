import type { ReactNode } from 'react';
import { views } from '../views';

const LETTERS: readonly { readonly key: string; readonly title: string }[] = [
  ...views,
  { key: '0', title: 'Whole trace' },
];

/** The keys that may follow `g`. */
export function ChordHint(): ReactNode {
  return (
    <div className="chord-hint popup" role="status">
      <ul className="wrap">
        {LETTERS.map(({ key, title }) => (
          <li key={key}>
            <kbd>{key}</kbd> {title}
          </li>
        ))}
      </ul>
    </div>
  );
}
