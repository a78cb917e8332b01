/** Short forms of C++ kernel names; the whole name stays in tooltips, copies and exports. */

const IS_TEMPLATE = /[A-Za-z_]\w*<|^void\s/;

/** Cuts template arguments nested deeper than `depth`, leaving `…`. */
function cutNesting(name: string, depth: number): string {
  let level = 0;
  let text = '';
  for (const letter of name) {
    if (letter === '<') {
      level += 1;
      if (level <= depth) text += '<';
      else if (level === depth + 1) text += '<…';
    } else if (letter === '>') {
      if (level <= depth + 1) text += '>';
      level = Math.max(0, level - 1);
    } else if (level <= depth) text += letter;
  }
  return text;
}

/** Drops the argument list that ends a C++ signature. */
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
  const short = cutNesting(plain, 1).trim();
  return short === '' ? name : short;
}
