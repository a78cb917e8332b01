import type { ReactNode } from 'react';
import { Copy } from './copy';
import './code.css';

interface Props {
  readonly code: string;
  readonly language?: string;
  /** The text that the button copies, if it is not the code. */
  readonly copied?: string;
}

const KEYWORDS =
  /(#[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\b(?:import|from|as|with|for|in|if|else|def|return|class|not|and|or|True|False|None|while|lambda|pass)\b|\b\d[\d_.]*\b)/g;

function tokenClass(token: string): string {
  if (token.startsWith('#')) return 'code-comment';
  if (token.startsWith('"') || token.startsWith("'")) return 'code-text';
  return /^\d/.test(token) ? 'code-number' : 'code-keyword';
}

/** Python with simple syntax colours. */
function coloured(code: string): ReactNode[] {
  return code.split(KEYWORDS).map((token, at) =>
    at % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the tokens of a fixed text never move
      <span key={at} className={tokenClass(token)}>
        {token}
      </span>
    ) : (
      token
    ),
  );
}

function diffLine(line: string): string {
  if (line.startsWith('+')) return 'code-line code-added';
  return line.startsWith('-') ? 'code-line code-removed' : 'code-line';
}

function Lines({ code, language }: Props): ReactNode {
  if (language === 'diff') {
    return code.split('\n').map((line, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a fixed text never move
      <span key={at} className={diffLine(line)}>
        {line || '\n'}
      </span>
    ));
  }
  return language === 'python' ? coloured(code) : code;
}

/** A code block with a Copy button. */
export function Code({ code, language = 'python', copied = code }: Props): ReactNode {
  return (
    <div className="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>
        <code>
          <Lines code={code.trimEnd()} language={language} />
        </code>
      </pre>
      <Copy text={copied} quiet />
    </div>
  );
}
