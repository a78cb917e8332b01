import { type ReactNode, useEffect, useState } from 'react';
import type { PageLocation } from '../../state/location';
import { useNavigation } from '../../state/navigation';
import { useChangeOptions, withOptions } from '../../state/option';

type Options = PageLocation['options'];
type Name = 'steps' | 'base-steps';

const WRITTEN = /^\d{1,15}(?:-\d{1,15})?$/;

/** The steps of a side in the URL, as `5` or `3-5`; null: all. */
export function selectedSteps(options: Options, name: Name): string | null {
  const text = options[name]?.trim() ?? '';
  return WRITTEN.test(text) ? text : null;
}

export const hasSelectedSteps = (options: Options): boolean =>
  (selectedSteps(options, 'steps') ?? selectedSteps(options, 'base-steps')) !== null;

/** The options with the steps of both sides exchanged. */
export const withSwappedSteps = (options: Options): Options =>
  withOptions(options, {
    steps: options['base-steps'] ?? null,
    'base-steps': options.steps ?? null,
  });

interface Props {
  readonly name: Name;
}

/** The numbers of the compared steps of a side; it applies on Enter and when it loses focus. */
export function StepsField({ name }: Props): ReactNode {
  const { location } = useNavigation();
  const change = useChangeOptions();
  const selected = selectedSteps(location.options, name) ?? '';
  const [typed, setTyped] = useState(selected);
  useEffect(() => setTyped(selected), [selected]);
  const text = typed.trim();
  const isValid = text === '' || WRITTEN.test(text);
  const apply = (): void => {
    if (isValid && text !== selected) change({ [name]: text }, 'push');
  };
  return (
    <label className="versus-steps inline muted">
      Steps
      <input
        type="text"
        inputMode="numeric"
        spellCheck={false}
        placeholder="all"
        value={typed}
        aria-invalid={!isValid}
        title="Numbers of the steps to compare: 5, or 3-5. Empty: all steps."
        onChange={(event) => setTyped(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => {
          if (event.key === 'Enter') apply();
        }}
      />
    </label>
  );
}
