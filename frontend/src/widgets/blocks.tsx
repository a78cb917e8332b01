import { Fragment, type ReactNode } from 'react';
import { type Block, type Piece, piecesOf, type Row } from '../core/blocks';
import { Code } from './code';
import { Icon } from './icon';

function drawnPiece(piece: Piece): ReactNode {
  switch (piece.kind) {
    case 'code':
      return <code className="inline-code">{piece.text}</code>;
    case 'strong':
      return <strong>{piece.text}</strong>;
    case 'link':
      return (
        <a href={piece.address} target="_blank" rel="noreferrer noopener">
          {piece.text} <Icon name="external" size={13} />
        </a>
      );
    default:
      return piece.text;
  }
}

function Line({ text }: { readonly text: string }): ReactNode {
  return piecesOf(text).map((piece, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of a fixed text never move
    <Fragment key={at}>{drawnPiece(piece)}</Fragment>
  ));
}

interface TableProps {
  readonly head: Row;
  readonly rows: readonly Row[];
}

function BlockTable({ head, rows }: TableProps): ReactNode {
  return (
    <div className="scroll-x">
      <table className="plain">
        {head.some((cell) => cell !== '') && (
          <thead>
            <tr>
              {head.map((cell) => (
                <th key={cell} scope="col">
                  <Line text={cell} />
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map(([name = '', ...others]) => (
            <tr key={name}>
              <th scope="row">
                <Line text={name} />
              </th>
              {others.map((cell, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the cells of a fixed text never move
                <td key={at}>
                  <Line text={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function drawn(block: Block): ReactNode {
  switch (block.kind) {
    case 'heading':
      return (
        <h4>
          <Line text={block.text} />
        </h4>
      );
    case 'paragraph':
      return (
        <p>
          <Line text={block.text} />
        </p>
      );
    case 'list':
      return (
        <ul>
          {block.items.map((item) => (
            <li key={item}>
              <Line text={item} />
            </li>
          ))}
        </ul>
      );
    case 'code':
      return <Code code={block.code} language={block.language} />;
    case 'table':
      return <BlockTable head={block.head} rows={block.rows} />;
  }
}

/** Blocks of text; no part of them is interpreted as HTML. */
export function Blocks({ blocks }: { readonly blocks: readonly Block[] }): ReactNode {
  return blocks.map((block, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the blocks of a fixed text never move
    <Fragment key={at}>{drawn(block)}</Fragment>
  ));
}
