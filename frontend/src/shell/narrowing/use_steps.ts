import { useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { api } from '../../api/client';
import type { Overview, StepRow } from '../../api/types.gen';
import { adjacentStep } from '../../core/step_choice';
import { useNavigation } from '../../state/navigation';
import { toast } from '../../widgets/toast';

/** Moves the filter to the previous or next step, or clears it; loads the steps on first use. */
export function useStepping(trace: string | null): (by: -1 | 0 | 1) => void {
  const client = useQueryClient();
  const { location, go } = useNavigation();
  const { step, time } = location;
  return useCallback(
    (by) => {
      if (by === 0) {
        if (step === null && time === null) return;
        go({ step: null, time: null });
        toast('All views show the whole trace', { undo: () => go({ step, time }) });
        return;
      }
      if (trace === null) return;
      const narrow = ({ steps }: Overview): void => {
        const next: StepRow | undefined = adjacentStep(steps, { step, time }, by);
        if (next) go({ step: next.number, time: null }, 'replace');
        else toast('This trace has no steps: call prof.step()');
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
