/** The lines in sight: they follow the pointer at once, and the URL when it rests. */
import { useEffect, useRef, useState } from 'react';
import type { Range } from '../../../canvas/viewport';
import { useNavigation } from '../../../state/navigation';
import { withOption } from '../../../state/option';
import { linesFrom, withinLines } from './layout';

const REST_MS = 250;

export function useLinesShown(count: number): readonly [Range, (view: Range) => void] {
  const { location, go } = useNavigation();
  const written = location.options.lines;
  const [view, setView] = useState(() => linesFrom(written, count));
  const told = useRef(written);
  const timer = useRef(0);
  const options = useRef(location.options);
  options.current = location.options;
  const lines = useRef(count);
  useEffect(() => {
    if (written === told.current && lines.current === count) return;
    told.current = written;
    lines.current = count;
    setView(linesFrom(written, count));
  }, [written, count]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const show = (next: Range): void => {
    setView(next);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const isAll = next.end - next.start >= count;
      told.current = isAll ? undefined : `${Math.round(next.start)}-${Math.round(next.end)}`;
      go({ options: withOption(options.current, 'lines', told.current ?? null) }, 'replace');
    }, REST_MS);
  };
  return [withinLines(view.start, Math.min(view.end - view.start, count), count), show];
}
