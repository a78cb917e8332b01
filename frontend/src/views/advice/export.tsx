import type { ReactNode } from 'react';
import type { RunReport } from '../../api/types.gen';
import { messageOf } from '../../core/errors';
import { type ExportFormat, ExportMenu } from '../../widgets/export_menu';
import { toast } from '../../widgets/toast';
import type { Findings } from './save';

interface Props {
  readonly report: RunReport;
  /** The parts of the file name before `advice`. */
  readonly name: readonly string[];
  readonly findings: Findings;
  /** All findings as Markdown. */
  readonly markdown: () => string;
}

/** Exports the advice; the code for it loads on first use. */
export function AdviceExport({ report, name, findings, markdown }: Props): ReactNode {
  const save = async (format: ExportFormat): Promise<void> => {
    try {
      const { saveAdvice } = await import('./save');
      saveAdvice({ report, name, findings, format });
    } catch (error) {
      const why = messageOf(error);
      toast(`The export failed: ${why}`, { tone: 'bad' });
    }
  };
  return (
    <ExportMenu
      note="CSV: the findings without dismissed ones. JSON: the whole report with all checks."
      onExport={(format) => void save(format)}
      markdown={markdown}
    />
  );
}
