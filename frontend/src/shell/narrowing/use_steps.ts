import { useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { api } from '../../api/client';
import type { Overview, StepRow } from '../../api/types.gen';
import { stepBeside } from '../../core/step_choice';
import { useNavigation } from '../../state/navigation';
import { toast } from '../../widgets/toast';

/** Narrows to the step before, the step behind, or to nothing; steps are asked for when they are first needed. */
export function useStepping(trace: string | null): (by: -1 | 0 | 1) => void {
  const client = useQueryClient();
  const { location, go } = useNavigation();
  const { step, time } = location;
  return useCallback(
    (by) => {
      if (by === 0) {
        if (step === null && time === null) return;
        go({ step: null, time: null });
        toast('All views show the whole recording', { undo: () => go({ step, time }) });
        return;
      }
      if (trace === null) return;
      const narrow = ({ steps }: Overview): void => {
        const next: StepRow | undefined = stepBeside(steps, { step, time }, by);
        if (next) go({ step: next.number, time: null }, 'replace');
        else toast('No step was marked in this recording: prof.step() marks them');
      };
      client
        .ensureQueryData({
          queryKey: ['overview', trace],
          queryFn: ({ signal }) => api.overview(trace, signal),
        })
        .then(narrow, (error: Error) => toast(error.message, { tone: 'bad' }));
    },
    [client, go, step, time, trace],
  );
}
