/** How many devices the job has and what one costs: in the URL, and in the browser for the next time. */
import { type ReactNode, useEffect, useId, useState } from 'react';
import type { JobReport } from '../../../api/types.gen';
import { count } from '../../../core/format';
import { type JobTerms, parsedNumber, termsOf } from '../../../core/job_saving';
import { readChoice, writeChoice } from '../../../host/choice';
import { useNavigation } from '../../../state/navigation';
import { withOption } from '../../../state/option';

const PRICE = 'gpu-hour-price';

/** What the user said, before what the recordings tell. */
export function useTerms(job: JobReport | null): JobTerms {
  const { gpus = '', price = readChoice(PRICE) ?? '' } = useNavigation().location.options;
  return termsOf(job, { deviceCount: parsedNumber(gpus), price: parsedNumber(price) });
}

interface FieldProps {
  readonly label: string;
  readonly title: string;
  readonly value: number | null;
  readonly onSay: (value: string | null) => void;
}

function Field({ label, title, value, onSay }: FieldProps): ReactNode {
  const id = useId();
  const known = value === null ? '' : String(value);
  const [typed, setTyped] = useState(known);
  useEffect(() => setTyped(known), [known]);
  const say = (): void => {
    const said = typed.trim();
    if (said === known) return;
    const isNumber = parsedNumber(said) !== null;
    // What is known without it stands there again, as after what is no number.
    if (!isNumber) setTyped(known);
    if (isNumber || said === '') onSay(said || null);
  };
  return (
    <span className="job-term" title={title}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        inputMode="decimal"
        size={7}
        placeholder="–"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={say}
        onKeyDown={(event) => {
          if (event.key === 'Enter') say();
        }}
      />
    </span>
  );
}

/** Devices and price, to be corrected: what the figures of a day rest on. */
export function Terms({ job }: { readonly job: JobReport | null }): ReactNode {
  const { location, go } = useNavigation();
  const terms = useTerms(job);
  const say = (name: string, value: string | null): void =>
    go({ options: withOption(location.options, name, value) }, 'replace');
  const told = job?.gpu_count ? ` Recorded: ${count(job.gpu_count)} ${job.gpu_source}.` : '';
  return (
    <div className="job-terms">
      <Field
        label="GPUs"
        title={`How many devices the job runs on.${told}`}
        value={terms.deviceCount}
        onSay={(value) => say('gpus', value)}
      />
      <Field
        label="Price of a GPU-hour"
        title="In your own currency; kept in this browser and in the link"
        value={terms.price}
        onSay={(value) => {
          writeChoice(PRICE, value);
          say('price', value);
        }}
      />
    </div>
  );
}
