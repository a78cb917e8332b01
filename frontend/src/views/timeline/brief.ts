/** What of a name is shown where there is little room. Pure. */

const PYTHON_CALL = /\(\d+\): (.+)$/s;

/** `aten::conv2d` → `conv2d`; `train.py(12): step` → `step`; of a template the words before it. */
export function briefName(short: string): string {
  const called = PYTHON_CALL.exec(short)?.[1];
  if (called !== undefined) return called;
  const [head = short] = short.split(/[<(]/, 1);
  const at = head.lastIndexOf('::');
  const brief = at === -1 ? short : short.slice(at + 2);
  return brief === '' ? short : brief;
}
