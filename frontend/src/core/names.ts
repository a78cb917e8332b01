/** Short C++ kernel names; tooltips, copies and exports have the whole name. */

const IS_TEMPLATE = /[A-Za-z_]\w*<|^void\s/;

/** Replaces nested template arguments by `…`. */
function cutNesting(name: string): string {
  let level = 0;
  return name.replaceAll(/[<>]|[^<>]+/g, (part) => {
    if (part === '<') {
      level += 1;
      return ['', '<', '<…'][level] ?? '';
    }
    if (part === '>') {
      level -= 1;
      return level <= 1 ? '>' : '';
    }
    return level <= 1 ? part : '';
  });
}

/** Removes the argument list at the end of a C++ signature. */
function cutArguments(name: string): string {
  if (!name.endsWith(')')) return name;
  let level = 0;
  for (let at = name.length - 1; at >= 0; at -= 1) {
    if (name[at] === ')') level += 1;
    if (name[at] === '(') level -= 1;
    if (level === 0) return name.slice(0, at);
  }
  return name;
}

/** `void at::native::reduce_kernel<512, at::native::ReduceOp<float>>(…)` → `reduce_kernel<512, ReduceOp<…>>`. */
export function shortName(name: string): string {
  if (!IS_TEMPLATE.test(name)) return name;
  const plain = cutArguments(name.replace(/^void\s+/, ''))
    .replaceAll('(anonymous namespace)::', '')
    .replaceAll(/\b(?:[A-Za-z_]\w*::)+/g, '');
  const short = cutNesting(plain).trim();
  return short === '' ? name : short;
}
