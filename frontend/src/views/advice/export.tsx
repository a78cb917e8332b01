import type { ReactNode } from 'react';
import type { RunReport } from '../../api/types.gen';
import { type ExportFormat, ExportMenu } from '../../widgets/export_menu';
import { toast } from '../../widgets/toast';
import type { Findings } from './save';

interface Props {
  readonly report: RunReport;
  /** The words of the file's name, before `advice`. */
  readonly name: readonly string[];
  /** Those that are shown. */
  readonly findings: Findings;
}

/** Takes the advice along as a file; what makes one is loaded when it is first asked for. */
export function AdviceExport({ report, name, findings }: Props): ReactNode {
  const save = async (format: ExportFormat): Promise<void> => {
    try {
      const { saveAdvice } = await import('./save');
      saveAdvice({ report, name, findings, format });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      toast(`No file could be made: ${why}`, { tone: 'bad' });
    }
  };
  return (
    <ExportMenu
      note="CSV: the findings, without those put aside. JSON: the report, with all that the checks said."
      onExport={(format) => void save(format)}
    />
  );
}
