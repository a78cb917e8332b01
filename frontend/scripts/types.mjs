/** Writes src/api/types.gen.ts from the API's OpenAPI document; `--check` only compares. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const WIDTH = 110;
const frontend = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const repository = resolve(frontend, '..');
const venv = resolve(repository, '.venv/bin/python');
const python = process.env.PYTHON ?? (existsSync(venv) ? venv : 'python3');

const document = JSON.parse(
  execFileSync(python, ['-m', 'stepscope', 'schema', '--api'], {
    env: { ...process.env, PYTHONPATH: resolve(repository, 'plugin') },
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  }),
);

/** Structs that omit fields with default values; all others send every field. */
const OMITTING = new Set(['Link']);

const literal = (value) => (value === null ? 'null' : `'${value}'`);
const union = (types) => [...new Set(types)].join(' | ');
const array = (item) => (/[ |]/.test(item) ? `(${item})[]` : `${item}[]`);
const SCALARS = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean' };

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.anyOf) return union(schema.anyOf.map(typeOf));
  if (schema.enum) return union(schema.enum.map(literal));
  if ('const' in schema) return literal(schema.const);
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeOf({ type })));
  if (schema.type === 'array') {
    if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(', ')}]`;
    return array(typeOf(schema.items ?? {}));
  }
  if (schema.type === 'object')
    return `Record<string, ${typeOf(schema.additionalProperties ?? {})}>`;
  return schema.type === 'null' ? 'null' : (SCALARS[schema.type] ?? 'unknown');
}

/** The OpenAPI document has the whole meaning. */
const firstSentence = (text) =>
  text
    .replace(/\s+/g, ' ')
    .replace(/([.;:]) (?=[A-Z]|\S).*$/, '$1')
    .replace(/[;:]$/, '.');

/** A field in one line, with its meaning if it fits. */
function field(name, schema, isOptional) {
  const line = `  ${name}${isOptional ? '?' : ''}: ${typeOf(schema)};`;
  const explained = `${line} // ${firstSentence(schema.description ?? '')}`;
  return schema.description && explained.length <= WIDTH ? explained : line;
}

function declaration(name, schema) {
  if (schema.type !== 'object' || !schema.properties)
    return `export type ${name} = ${typeOf(schema)};`;
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties).map(([key, own]) =>
    field(key, own, OMITTING.has(name) && !required.has(key)),
  );
  const meaning = schema.description ? `/** ${schema.description.split('\n')[0]} */\n` : '';
  return `${meaning}${struct(name, fields)}`;
}

/** A struct in one line if it is short and has no comments. */
function struct(name, fields) {
  const short = `export interface ${name} { ${fields.map((text) => text.trim()).join(' ')} }`;
  if (short.length <= WIDTH && !short.includes('//')) return short;
  return `export interface ${name} {\n${fields.join('\n')}\n}`;
}

const queryOf = (parameters) =>
  parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, required, schema }) =>
      required ? `${name}: ${typeOf(schema)}` : `${name}?: ${typeOf(schema)}`,
    );

const queries = new Map();

/** The type of a query; long ones are named, and shared by paths with the same parameters. */
function namedQuery(path, operation) {
  const fields = queryOf(operation.parameters ?? []);
  const short = fields.length === 0 ? 'object' : `{ ${fields.join('; ')} }`;
  if (short.length <= 56) return short;
  const text = fields.map((each) => `  ${each};`).join('\n');
  const words = path.replace(/^\/\w+\/\{\w+\}|\{\w+\}/g, '').match(/\w+/g) ?? [];
  const name = `${words.map((word) => word[0].toUpperCase() + word.slice(1)).join('')}Query`;
  if (!queries.has(text)) queries.set(text, name);
  return queries.get(text);
}

function pathLine(path, operation) {
  const [type, { schema }] = Object.entries(operation.responses['200'].content)[0];
  const response = type === 'application/json' ? typeOf(schema) : 'ArrayBuffer';
  return `  '${path.slice(1)}': [${namedQuery(path, operation)}, ${response}];`;
}

const gets = Object.entries(document.paths).flatMap(([path, methods]) =>
  methods.get ? [pathLine(path, methods.get)] : [],
);
const posts = Object.entries(document.paths).flatMap(([path, { post }]) =>
  post ? [pathLine(path, post)] : [],
);
const declarations = [
  '/* Generated from plugin/stepscope/api by `npm run types`; do not edit. */',
  '/** Paths below `api/` that are read, each with its query and its response. */',
  `export interface Gets {\n${gets.join('\n')}\n}`,
  '/** Paths below `api/` that change something. */',
  `export interface Posts {\n${posts.join('\n')}\n}`,
  ...[...queries].map(([fields, name]) => struct(name, fields.split('\n'))),
  ...Object.entries(document.components.schemas).map(([name, schema]) => declaration(name, schema)),
];
const text = `${declarations.join('\n\n').replaceAll('*/\n\nexport', '*/\nexport')}\n`;

const target = resolve(frontend, 'src/api/types.gen.ts');
if (!process.argv.includes('--check')) {
  writeFileSync(target, text);
} else if (readFileSync(target, 'utf8') !== text) {
  console.error(`${target} does not fit plugin/stepscope/api: run \`npm run types\`.`);
  process.exit(1);
}
