/** A setting of a view in the URL; defaults are not written. */
import { useNavigation } from './navigation';

type Mode = 'push' | 'replace';
type Choose<T> = (value: T, mode?: Mode) => void;

type Options = Readonly<Record<string, string>>;
export type OptionChanges = Readonly<Record<string, string | null>>;

/** The options with some changed; null and empty values are removed. */
export function withOptions(options: Options, changes: OptionChanges): Options {
  const all = Object.entries({ ...options, ...changes });
  return Object.fromEntries(
    all.filter((entry): entry is [string, string] => entry[1] !== null && entry[1] !== ''),
  );
}

/** Changes some options of the view. */
export function useChangeOptions(): (changes: OptionChanges, mode?: Mode) => void {
  const { location, go } = useNavigation();
  return (changes, mode = 'replace') =>
    go({ options: withOptions(location.options, changes) }, mode);
}

/** A setting with a fixed set of values; unknown values give the default. */
export function useOption<T extends string>(
  name: string,
  usual: T,
  values: readonly T[],
): readonly [T, Choose<T>] {
  const { location } = useNavigation();
  const change = useChangeOptions();
  const match = values.find((candidate) => candidate === location.options[name]);
  const choose: Choose<T> = (value, mode = 'replace') =>
    change({ [name]: value === usual ? null : value }, mode);
  return [match ?? usual, choose];
}
