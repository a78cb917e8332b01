/** The selected frame: full name, source line, links and values. */
import type { ReactNode } from 'react';
import { useTheme } from '../../host/theme';
import { Button } from '../../widgets/button';
import { Copy } from '../../widgets/copy';
import { Goto } from '../../widgets/goto';
import { SourceLine } from '../../widgets/source_line';
import { kindColour } from './colours';
import { mergedLabel, pythonLocation } from './labels';
import { isSmaller, kindOf, type Layout, type Node, nameOf } from './layout';
import { Figures } from './tooltip';

interface Props {
  readonly layout: Layout;
  readonly node: Node;
  readonly root: Node;
  readonly onAlone: (name: string, direction: 'callees' | 'callers') => void;
}

/** Views with a row for a kind. */
const VIEWS: Readonly<Record<string, string>> = { operator: 'operators', kernel: 'kernels' };

export function Details({ layout, node, root, onAlone }: Props): ReactNode {
  const theme = useTheme();
  const figures = <Figures layout={layout} node={node} root={root} />;
  if (isSmaller(layout, node)) {
    return (
      <aside className="flame-details column" aria-label="Selected frame">
        <p className="flame-name clamped">
          {mergedLabel(layout, node)}, each narrower than a pixel. Zoom in to the frame above to see
          more of them; the list of functions has all.
        </p>
        {figures}
      </aside>
    );
  }
  const name = nameOf(layout, node);
  const kind = kindOf(layout, node);
  const location = pythonLocation(name);
  const view = VIEWS[kind];
  return (
    <aside className="flame-details column" aria-label="Selected frame">
      <div className="flame-about wrap">
        <span className="swatch" style={{ background: kindColour(kind, theme) }} />
        <p className="flame-name clamped" title={name}>
          {location ? location.of : name}
        </p>
        {location && <SourceLine path={location.path} line={location.line} />}
        {kind !== 'rest' && (
          <span className="flame-asks">
            <Button quiet onClick={() => onAlone(name, 'callers')}>
              Callers
            </Button>
            <Button quiet onClick={() => onAlone(name, 'callees')}>
              All calls
            </Button>
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
      {figures}
    </aside>
  );
}
