/** A finding as Markdown, to paste into an issue or a merge request. Pure. */
import type { ClaimReport, Outcome } from '../../api/types.gen';
import { duration, durationRange, instant, quantity, share } from '../../core/format';
import { sentence } from '../../core/sentence';

export interface MarkdownContext {
  readonly run: string;
  readonly perStep: boolean;
  readonly link: string;
}

/** A table's cell: one line, and no bar that would end it. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

/** A fence longer than any in the code. */
function fenced(code: string, language: string): string {
  if (code === '') return '';
  const longest = Math.max(2, ...[...code.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${code.trimEnd()}\n${fence}`;
}

export function savingText(claim: ClaimReport, perStep: boolean): string {
  const per = perStep ? ' per step' : ' in all';
  if (claim.net_high_ns === 0)
    return `${duration(claim.gross_ns)}${per}, counted in other findings`;
  return `up to ${duration(claim.net_high_ns)}${per} (${share(claim.net_share)}), likely ${durationRange(claim.net_low_ns, claim.net_high_ns)}`;
}

export function findingMarkdown(outcome: Outcome, context: MarkdownContext): string {
  const { claim, fix } = outcome;
  const grade = [outcome.severity, outcome.confidence && `${outcome.confidence} confidence`];
  const evidence = outcome.evidence.map((row) => [row.label, quantity(row.value, row.unit)]);
  const events = outcome.events.map((event) => [
    event.name,
    event.track,
    instant(event.start_ns),
    duration(event.duration_ns),
    event.detail,
  ]);
  const paragraphs = [
    `### ${outcome.title}`,
    `\`${outcome.rule}\` · ${grade.filter(Boolean).join(', ')} · run \`${context.run}\`, worker \`${outcome.worker}\`, span ${outcome.span}`,
    outcome.doubts.length > 0 ? `**Doubtful:** ${outcome.doubts.map(sentence).join(' ')}` : '',
    claim ? `**Saving:** ${savingText(claim, context.perStep)}. ${claim.method}` : '',
    outcome.message,
    outcome.why,
    table(['Evidence', 'Value'], evidence),
    table(['Worst events', 'Track', 'At', 'Duration', 'Detail'], events),
    fix ? `**Fix:** ${fix.summary}` : '',
    fix ? fenced(fix.code, fix.language) : '',
    fix?.verify ? `**Verify:** ${fix.verify}` : '',
    fix?.caveats.length ? `**Caveats:**\n${fix.caveats.map((text) => `- ${text}`).join('\n')}` : '',
    outcome.links.map((link) => `- ${link}`).join('\n'),
    `[In stepscope](${context.link})`,
  ];
  return `${paragraphs.filter((text) => text !== '').join('\n\n')}\n`;
}
