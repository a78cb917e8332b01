/** The chosen frame: its whole name, where it is in the source, and what can be asked of it. */
import type { ReactNode } from 'react';
import { Copy } from '../../widgets/copy';
import { Goto } from '../../widgets/goto';
import { SourceLine } from '../../widgets/source_line';
import { kindColour } from './colours';
import { isSmaller, kindOf, type Layout, type Node, nameOf } from './layout';
import { Figures } from './tooltip';
import { pythonPlace, smallerWords } from './words';

interface Props {
  readonly layout: Layout;
  readonly node: Node;
  readonly root: Node;
  readonly onAlone: (name: string, direction: 'callees' | 'callers') => void;
}

/** Kinds that another view has a row for. */
const VIEWS: Readonly<Record<string, string>> = { operator: 'operators', kernel: 'kernels' };

export function Details({ layout, node, root, onAlone }: Props): ReactNode {
  if (isSmaller(layout, node)) {
    return (
      <aside className="flame-details" aria-label="The chosen frame">
        <p className="flame-name">
          {smallerWords(layout, node)}, each narrower than a pixel here. The frame above shows more
          of them when it fills the picture; the list of functions has them all.
        </p>
        <Figures layout={layout} node={node} root={root} />
      </aside>
    );
  }
  const name = nameOf(layout, node);
  const kind = kindOf(layout, node);
  const place = pythonPlace(name);
  const view = VIEWS[kind];
  const isRest = kind === 'rest';
  return (
    <aside className="flame-details" aria-label="The chosen frame">
      <div className="flame-about">
        <span className="flame-swatch" style={{ background: kindColour(kind) }} />
        <p className="flame-name" title={name}>
          {place ? place.of : name}
        </p>
        {place && <SourceLine path={place.path} line={place.line} />}
        {!isRest && (
          <span className="flame-asks">
            <button type="button" className="button quiet" onClick={() => onAlone(name, 'callers')}>
              Its callers
            </button>
            <button type="button" className="button quiet" onClick={() => onAlone(name, 'callees')}>
              All its calls
            </button>
            {view && (
              <Goto to={{ view, search: name }} className="button quiet">
                In {view}
              </Goto>
            )}
            <Goto to={{ view: 'timeline', search: name }} className="button quiet">
              In the timeline
            </Goto>
            <Copy text={name} label="Copy name" quiet />
          </span>
        )}
      </div>
      <Figures layout={layout} node={node} root={root} />
    </aside>
  );
}
