/** A setting of a view in the URL; defaults are not written. */
import { useNavigation } from './navigation';

type Choose<T> = (value: T, mode?: 'push' | 'replace') => void;

/** The options with one changed; null and empty values are removed. */
export function withOption(
  options: Readonly<Record<string, string>>,
  name: string,
  value: string | null,
): Readonly<Record<string, string>> {
  const others = Object.fromEntries(Object.entries(options).filter(([key]) => key !== name));
  return value === null || value === '' ? others : { ...others, [name]: value };
}

/** A setting with a fixed set of values; unknown values give the default. */
export function useOption<T extends string>(
  name: string,
  usual: T,
  values: readonly T[],
): readonly [T, Choose<T>] {
  const { location, go } = useNavigation();
  const match = values.find((candidate) => candidate === location.options[name]);
  const choose: Choose<T> = (value, mode = 'replace') =>
    go({ options: withOption(location.options, name, value === usual ? null : value) }, mode);
  return [match ?? usual, choose];
}
