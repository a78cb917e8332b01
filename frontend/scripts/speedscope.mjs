/**
 * Copies speedscope's release from npm with its licences into the built page, without its example
 * and its Java reader, which the content policy would not let run.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const frontend = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const packaged = join(frontend, 'node_modules', 'speedscope');
const release = join(packaged, 'dist', 'release');
const LEFT_OUT = /^(?:perf-.*|jfrview.*|release\.txt|favicon-.*\.js|index\.html|.*\.map)$/;

/**
 * Stubs for features that the content policy forbids and speedscope can do without, so that no
 * violation is reported: WebAssembly, eval, a Node module.
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

/** Source and target name of each file. */
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
