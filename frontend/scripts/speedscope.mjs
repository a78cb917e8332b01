/**
 * Puts speedscope beside the page: its own build from npm with its licences. Left out is what nothing of ours
 * asks for: its example, and a reader of Java's recordings, which our content policy would not let run.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const frontend = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const packaged = join(frontend, 'node_modules', 'speedscope');
const release = join(packaged, 'dist', 'release');
const LEFT_OUT = /^(?:perf-.*|jfrview.*|release\.txt|favicon-.*\.js|index\.html|.*\.map)$/;

/**
 * What our content policy forbids speedscope tries when it starts, and does without: compiled arithmetic, its reader of
 * Java's recordings, a module that only Node has. Refused here first, it leaves no violation behind.
 */
const WITHOUT_CODE = 'without_code.js';
const WITHOUT_CODE_TEXT = `const never = () => new Promise(() => {});
window.WebAssembly = { instantiate: never, instantiateStreaming: never };
window.eval = () => {
  throw new EvalError('The content policy allows no code in text.');
};
`;

function writeStart(target) {
  const html = readFileSync(join(release, 'index.html'), 'utf8');
  if (!html.includes('<body>')) throw new Error('speedscope begins otherwise: see this script.');
  const script = `<body>\n    <script src="${WITHOUT_CODE}"></script>`;
  writeFileSync(join(target, 'index.html'), html.replace('<body>', script));
  writeFileSync(join(target, WITHOUT_CODE), WITHOUT_CODE_TEXT);
}

/** What is copied: each file, and what it is called. */
export function speedscopeFiles() {
  const own = readdirSync(release)
    .filter((name) => !LEFT_OUT.test(name))
    .map((name) => [join(release, name), name.replace(/\.md$/, '.txt')]);
  return [...own, [join(packaged, 'LICENSE'), 'LICENSE.txt']];
}

export function speedscope() {
  let target = '';
  return {
    name: 'stepscope-speedscope',
    apply: 'build',
    configResolved: ({ root, build }) => {
      target = resolve(root, build.outDir, 'speedscope');
    },
    closeBundle: () => {
      mkdirSync(target, { recursive: true });
      for (const [from, name] of speedscopeFiles()) copyFileSync(from, join(target, name));
      writeStart(target);
    },
  };
}
