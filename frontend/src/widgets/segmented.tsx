import { type ReactNode, useId } from 'react';
import { useOption } from '../state/option';
import './segmented.css';

export interface Segment<T extends string> {
  readonly id: T;
  readonly label: string;
  readonly title?: string | undefined;
  readonly isDisabled?: boolean;
}

interface Props<T extends string> {
  /** The subject: `Unit`. */
  readonly label: string;
  readonly segments: readonly Segment<T>[];
  readonly value: T;
  readonly onChoose: (value: T) => void;
  /** Whether the label is visible. */
  readonly isLabelled?: boolean;
}

/** A choice of a few visible values: radio buttons. */
export function Segmented<T extends string>(props: Props<T>): ReactNode {
  const { label, segments, value, onChoose, isLabelled = false } = props;
  const name = useId();
  return (
    <fieldset className="inline">
      <legend className="visually-hidden">{label}</legend>
      {isLabelled && (
        <span className="note" aria-hidden="true">
          {label}
        </span>
      )}
      <span className="segmented-row">
        {segments.map((segment) => (
          <label key={segment.id} className="segmented-choice" title={segment.title}>
            <input
              type="radio"
              name={name}
              className="visually-hidden"
              checked={segment.id === value}
              disabled={segment.isDisabled}
              onChange={() => onChoose(segment.id)}
            />
            {segment.label}
          </label>
        ))}
      </span>
    </fieldset>
  );
}

interface OptionSegments<T extends string> extends Pick<Props<T>, 'label' | 'isLabelled'> {
  readonly segments: readonly Segment<T>[];
  /** By default the first. */
  readonly usual?: T | undefined;
}

/** A choice that is an option of the view: its value, and its segments. */
export function useSegments<T extends string>(
  option: string,
  { segments, usual = segments[0]?.id as T, ...look }: OptionSegments<T>,
): readonly [T, ReactNode] {
  const ids = segments.map(({ id }) => id);
  const [value, choose] = useOption<T>(option, usual, ids);
  const drawn = <Segmented {...look} segments={segments} value={value} onChoose={choose} />;
  return [value, drawn];
}
