import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, segment } from '../../api/client';
import type { RulePage as RulePageText } from '../../api/types.gen';
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
  const query = useQuery({
    queryKey: ['rule', rule],
    queryFn: ({ signal }) => api.get<RulePageText>(`rules/${segment(rule)}`, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Loaded query={query} what="The page of this check">
      {({ text }) => <Blocks blocks={withoutHead(blocksOf(text))} />}
    </Loaded>
  );
}
