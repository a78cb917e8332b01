/** One of a view's own choices, kept in the URL under `options`; the usual one is not written. */
import { useNavigation } from './navigation';

type Choose<T> = (value: T, mode?: 'push' | 'replace') => void;

/** Options with one of them changed; null and the usual value leave no trace in the URL. */
export function withOption(
  options: Readonly<Record<string, string>>,
  name: string,
  value: string | null,
): Readonly<Record<string, string>> {
  const others = Object.fromEntries(Object.entries(options).filter(([key]) => key !== name));
  return value === null || value === '' ? others : { ...others, [name]: value };
}

/** A choice of a few: what the URL says, or the usual one where it says nothing or nothing that is known. */
export function useOption<T extends string>(
  name: string,
  usual: T,
  known: readonly T[],
): readonly [T, Choose<T>] {
  const { location, go } = useNavigation();
  const found = known.find((each) => each === location.options[name]);
  const choose: Choose<T> = (value, mode = 'replace') =>
    go({ options: withOption(location.options, name, value === usual ? null : value) }, mode);
  return [found ?? usual, choose];
}
