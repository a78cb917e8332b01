/** A finding as Markdown, to paste into an issue or a merge request. Pure. */

import type {
  ClaimReport,
  Evidence,
  EvidenceTable,
  Outcome,
  SourceLine,
} from '../../api/types.gen';
import { decisiveSaving, otherSaving, shareWords, timeWords } from '../../core/claims';
import { markdownTable, markdownText as plain } from '../../core/export';
import { duration, instant, quantity } from '../../core/format';
import { sentence } from '../../core/sentence';

export const EFFORT: Readonly<Record<NonNullable<Outcome['effort']>, string>> = {
  flag: 'an argument or a line',
  hour: 'an hour for a person who knows the code',
  day: 'a day or more',
};
export const SHORT_EFFORT: typeof EFFORT = {
  flag: 'a line',
  hour: 'an hour',
  day: 'a day or more',
};
export const RISK: Readonly<Record<NonNullable<Outcome['risk']>, string>> = {
  none: 'none: the results stay the same',
  numerics: 'results change slightly: check that the model still converges',
  memory: 'needs more memory',
  behaviour: 'may change the behaviour of the program',
};

type Cell = EvidenceTable['rows'][number]['cells'][number];

export interface MarkdownContext {
  readonly run: string;
  readonly perStep: boolean;
  readonly link: string;
}

const table: typeof markdownTable = (header, rows) =>
  rows.length === 0 ? '' : markdownTable(header, rows);

/** A fence of backticks, longer than any run in the text. */
function ticks(text: string, least: number): string {
  const runs = [...text.matchAll(/`+/g)].map((run) => run[0].length);
  return '`'.repeat(Math.max(least, ...runs.map((length) => length + 1)));
}

function fenced(lines: string, language: string): string {
  if (lines === '') return '';
  const fence = ticks(lines, 3);
  return `${fence}${language}\n${lines.trimEnd()}\n${fence}`;
}

/** A name as code: outside of code `<float>` would be read as a tag. */
function code(name: string): string {
  if (name === '') return '';
  const fence = ticks(name, 1);
  const space = name.includes('`') ? ' ' : '';
  return `${fence}${space}${name.replaceAll(/\s+/g, ' ')}${space}${fence}`;
}

function value(of: Cell, unit: Evidence['unit']): string {
  const text = quantity(of, unit);
  return unit === 'code' && of !== null ? code(text) : plain(text);
}

function evidenceTable({ label, columns, rows }: EvidenceTable): string {
  if (rows.length === 0) return '';
  const cells = rows.map((row) =>
    columns.map(({ unit }, at) => value(row.cells[at] ?? null, unit)),
  );
  return `**${plain(label)}:**\n\n${table(
    columns.map((column) => plain(column.label)),
    cells,
  )}`;
}

function lineOfCode({ path, line, function: of }: SourceLine): string {
  const where = line > 0 ? `${path}:${line}` : path;
  return code(of === '' ? where : `${where} (${of})`);
}

function price({ effort, risk }: Outcome): string {
  const facts = [effort && `**Effort:** ${EFFORT[effort]}`, risk && `**Risk:** ${RISK[risk]}`];
  return facts.filter(Boolean).join(' · ');
}

export function savingText(claim: ClaimReport, perStep: boolean): string {
  const saving = decisiveSaving(claim);
  const other = otherSaving(claim) && `; ${otherSaving(claim)}`;
  if (saving.highNs === 0) return `none${other}`;
  const words = `${timeWords(saving, perStep)} (${shareWords(saving, perStep)})`;
  return saving.netHighNs === 0 ? `${words}, counted under other findings` : `${words}${other}`;
}

export function findingMarkdown(outcome: Outcome, context: MarkdownContext): string {
  const { claim, fix } = outcome;
  const grade = [outcome.severity, outcome.confidence && `${outcome.confidence} confidence`];
  const evidence = outcome.evidence.map((row) => [plain(row.label), value(row.value, row.unit)]);
  const events = outcome.events.map((event) => [
    code(event.name),
    plain(event.track),
    instant(event.start_ns),
    duration(event.duration_ns),
    plain(event.detail),
  ]);
  const paragraphs = [
    `### ${plain(outcome.title)}`,
    `\`${outcome.rule}\` · ${grade.filter(Boolean).join(', ')} · run ${code(context.run)}, worker ${code(outcome.worker)}, span ${plain(outcome.span)}`,
    outcome.doubts.length > 0
      ? `**Doubtful:** ${plain(outcome.doubts.map(sentence).join(' '))}`
      : '',
    claim
      ? `**Potential saving:** ${savingText(claim, context.perStep)}. ${plain(claim.method)}`
      : '',
    plain(outcome.message),
    plain(outcome.why),
    table(['Evidence', 'Value'], evidence),
    ...outcome.tables.map(evidenceTable),
    table(['Worst events', 'Track', 'At', 'Duration', 'Detail'], events),
    outcome.locations.length > 0
      ? `**Source lines:** ${outcome.locations.map(lineOfCode).join(', ')}`
      : '',
    fix ? `**Fix:** ${plain(fix.summary)}` : '',
    fix ? fenced(fix.code, fix.language) : '',
    price(outcome),
    fix?.verify ? `**Verify:** ${plain(fix.verify)}` : '',
    fix?.caveats.length
      ? `**Caveats:**\n${fix.caveats.map((text) => `- ${plain(text)}`).join('\n')}`
      : '',
    outcome.links.map((link) => `- ${link}`).join('\n'),
    `[In stepscope](<${context.link.replaceAll(/[<>]/g, encodeURIComponent)}>)`,
  ];
  return `${paragraphs.filter((text) => text !== '').join('\n\n')}\n`;
}
