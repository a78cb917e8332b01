import type { ReactNode } from 'react';
import { useStaticQuery } from '../../api/queries';
import { type Block, blocksOf } from '../../core/blocks';
import { Blocks } from '../../widgets/blocks';
import { Loaded } from '../../widgets/loaded';

/** Without the name and title of the rule, which the finding shows. */
function withoutHead(blocks: readonly Block[]): readonly Block[] {
  return blocks.slice(blocks.findIndex(({ kind }) => kind === 'table'));
}

interface Props {
  readonly rule: string;
}

/** The documentation of a rule, as `stepscope explain` prints it. */
export default function RulePage({ rule }: Props): ReactNode {
  const query = useStaticQuery('rules/{rule}', { rule });
  return (
    <Loaded query={query} what="The page of this check">
      {({ text }) => <Blocks blocks={withoutHead(blocksOf(text))} />}
    </Loaded>
  );
}
