/** Writes src/api/types.gen.ts from the wire types of the Python package, so that the two cannot drift; `--check` writes nothing. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compile } from 'json-schema-to-typescript';

const frontend = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const repository = resolve(frontend, '..');
const venv = resolve(repository, '.venv/bin/python');
const python = process.env.PYTHON ?? (existsSync(venv) ? venv : 'python3');

const source =
  'import json; from stepscope.api.openapi import answer_schemas; print(json.dumps({"$defs": answer_schemas()}))';
const document = JSON.parse(
  execFileSync(python, ['-c', source], {
    env: { ...process.env, PYTHONPATH: resolve(repository, 'plugin') },
    encoding: 'utf8',
  }),
);

/** Structs that leave out fields which hold their default; all others always send every field. */
const OMITTING = new Set(['Link']);

/** Titles on properties would become one alias each; every answer's field is there, default or not. */
function asSent(name, schema) {
  if (schema.type !== 'object') return schema;
  const names = Object.keys(schema.properties ?? {});
  return {
    ...schema,
    additionalProperties: false,
    required: OMITTING.has(name) ? (schema.required ?? []) : names,
  };
}

const definitions = Object.fromEntries(
  Object.entries(document.$defs).map(([name, schema]) => [name, asSent(name, schema)]),
);
const text = JSON.stringify({
  title: 'Answers',
  description: 'Every answer of the API, by its type.',
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(
    Object.keys(definitions).map((name) => [name, { $ref: `#/definitions/${name}` }]),
  ),
  definitions,
}).replaceAll('#/$defs/', '#/definitions/');

const types = await compile(JSON.parse(text), 'Answers', {
  bannerComment: '/* Generated from plugin/stepscope/api by `npm run types`; do not edit. */',
  format: false,
  ignoreMinAndMaxItems: true,
});
const target = resolve(frontend, 'src/api/types.gen.ts');
if (!process.argv.includes('--check')) {
  writeFileSync(target, types);
} else if (readFileSync(target, 'utf8') !== types) {
  console.error(`${target} does not fit plugin/stepscope/api: run \`npm run types\`.`);
  process.exit(1);
}
