/** Checks the size of the built page, gzipped: the first view, and everything. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const FIRST_VIEW_BYTES = 150_000;
const ALL_BYTES = 450_000;
/** Opened in a tab of its own, and written into files by `stepscope share`. */
const SEPARATE = ['speedscope', 'shared'];
/** The views that a link without a view opens, of which the larger counts: of one run, and of several. */
const LANDING_VIEWS = ['src/views/advice/page.tsx', 'src/views/runs/page.tsx'];

const frontend = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const built = resolve(frontend, process.argv[2] ?? '../plugin/stepscope/static');

function gzipped(file) {
  return gzipSync(readFileSync(join(built, file)), { level: 9 }).length;
}

/** A chunk with its imports and styles. */
function filesOf(manifest, name, found = new Set()) {
  const chunk = manifest[name];
  if (!chunk) throw new Error(`The build has no ${name}. Run “npm run build” first.`);
  if (found.has(chunk.file)) return found;
  for (const file of [chunk.file, ...(chunk.css ?? []), ...(chunk.assets ?? [])]) found.add(file);
  for (const imported of chunk.imports ?? []) filesOf(manifest, imported, found);
  return found;
}

function everyFile(folder = built) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return SEPARATE.includes(name) ? [] : everyFile(path);
    return name === 'manifest.json' ? [] : [path.slice(built.length + 1)];
  });
}

const sum = (files) => [...files].reduce((total, file) => total + gzipped(file), 0);

function sizes() {
  const manifest = JSON.parse(readFileSync(join(built, 'manifest.json'), 'utf8'));
  const shell = filesOf(manifest, 'index.html');
  const views = LANDING_VIEWS.map((view) =>
    filesOf(manifest, view, new Set(['index.html', ...shell])),
  );
  return { firstViewBytes: Math.max(...views.map(sum)), allBytes: sum(everyFile()) };
}

const { firstViewBytes, allBytes } = sizes();
const lines = [
  ['first view', firstViewBytes, FIRST_VIEW_BYTES],
  ['everything', allBytes, ALL_BYTES],
];
for (const [what, bytes, budget] of lines) {
  const words = `${what}: ${(bytes / 1000).toFixed(1)} kB gzipped, of ${budget / 1000} kB`;
  if (bytes > budget) process.exitCode = 1;
  console.log(bytes > budget ? `TOO LARGE  ${words}` : words);
}
