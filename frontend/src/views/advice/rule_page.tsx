import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, segment } from '../../api/client';
import type { RulePage as Answer } from '../../api/types.gen';
import { type Block, blocksOf } from '../../core/blocks';
import { Blocks } from '../../widgets/blocks';
import { Loaded } from '../../widgets/loaded';

/** Without the rule's name and title at its top: the finding has said them. */
function withoutHead(blocks: readonly Block[]): readonly Block[] {
  return blocks.slice(blocks.findIndex(({ kind }) => kind === 'table'));
}

interface Props {
  readonly rule: string;
}

/** All about a rule, as `stepscope explain` prints it; it comes from the server, not from the web. */
export default function RulePage({ rule }: Props): ReactNode {
  const query = useQuery({
    queryKey: ['rule', rule],
    queryFn: ({ signal }) => api.get<Answer>(`rules/${segment(rule)}`, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Loaded query={query} what="The page of this check">
      {({ text }) => <Blocks blocks={withoutHead(blocksOf(text))} />}
    </Loaded>
  );
}
