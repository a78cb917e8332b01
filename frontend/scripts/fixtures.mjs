/**
 * Writes the views' fixtures from real answers, so that they cannot drift from the API. The samples
 * hold no damage, so that is made: in a folder with links to what lies in `sample_logs`,
 * `cd tests && python -m browser.damaged FOLDER`, then `stepscope serve FOLDER --port 6007 &`, then
 * `npm run fixtures -- http://127.0.0.1:6007`.
 *
 * A view's further answers are listed in its `fixtures/asked.json`: `{"memory-curve": {"path":
 * "traces/<trace>/memory/curve", "run": "synthetic_dataloader/fault"}}`; `run` may be left out.
 * `<run>` is that run's id, `<run synthetic_dataloader/fix>` another one's.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const base = process.argv[2];
if (!base) {
  console.error('Say where stepscope serves: npm run fixtures -- http://127.0.0.1:6007');
  process.exit(2);
}
/** A run that has data for every part of every view. */
const runName = process.argv[3] ?? 'synthetic_dataloader/fault';
/** A run with damage and missing parts. */
const damagedName = process.argv[4] ?? 'damaged';
const WAIT_MS = 500;
const MOST_WAITS = 240;

const frontend = resolve(dirname(fileURLToPath(import.meta.url)), '..');

async function answer(path) {
  const response = await fetch(new URL(`api/${path}`, base.endsWith('/') ? base : `${base}/`));
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function readRuns() {
  for (let waits = 0; waits < MOST_WAITS; waits += 1) {
    const runs = await answer('runs');
    if (!runs.loading && !runs.scanning) return runs;
    await new Promise((done) => setTimeout(done, WAIT_MS));
  }
  throw new Error('The server is still reading. Try again later.');
}

function write(path, value) {
  writeFileSync(resolve(frontend, path), `${JSON.stringify(value, null, 1)}\n`);
  console.log(path);
}

const runs = await readRuns();

function named(name) {
  const found = runs.runs.find((each) => each.name === name);
  if (found) return found;
  throw new Error(`There is no run ${name}; there are ${runs.runs.map((each) => each.name)}`);
}

const run = named(runName);
const { trace } = run.workers[0].spans[0];

// The folder does not matter.
write('tests/fixtures/runs.json', { ...runs, logdir: 'sample_logs' });
write('src/views/runs/fixture.json', { ...runs, logdir: 'sample_logs' });
write('src/views/advice/fixture.json', await answer(`runs/${run.id}/advice`));
for (const view of ['overview', 'operators', 'kernels']) {
  write(`src/views/${view}/fixture.json`, await answer(`traces/${trace}/${view}`));
}
// The responses in a view's fixtures/ are requested again, of their own run where asked.json names
// one.
for (const view of readdirSync(resolve(frontend, 'src/views'))) {
  const folder = `src/views/${view}/fixtures`;
  if (!existsSync(resolve(frontend, folder))) continue;
  const about = JSON.parse(readFileSync(resolve(frontend, folder, 'asked.json'), 'utf8'));
  for (const [name, asked] of Object.entries(about)) {
    const of = named(asked.run ?? runName);
    const path = asked.path
      .replace('<run>', of.id)
      .replace(/<run ([^>]+)>/g, (_, other) => named(other).id)
      .replace('<trace>', of.workers[0].spans[0].trace);
    write(`${folder}/${name}.json`, await answer(path));
  }
}
write('src/views/health/fixture.json', await answer(`runs/${named(damagedName).id}/advice`));
