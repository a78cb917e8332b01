/** The number of devices of the job and their price, in the URL and in the browser's storage. */
import { type ReactNode, useEffect, useId, useState } from 'react';
import type { JobReport } from '../../../api/types.gen';
import { count } from '../../../core/format';
import { type JobTerms, parsedNumber, termsOf } from '../../../core/job_saving';
import { readChoice, writeChoice } from '../../../host/choice';
import { useNavigation } from '../../../state/navigation';
import { withOptions } from '../../../state/option';

const PRICE = 'gpu-hour-price';

/** Input of the user takes precedence over the traces. */
export function useTerms(job: JobReport | null): JobTerms {
  const { gpus = '', price = readChoice(PRICE) ?? '' } = useNavigation().location.options;
  return termsOf(job, { deviceCount: parsedNumber(gpus), price: parsedNumber(price) });
}

interface FieldProps {
  readonly label: string;
  readonly title: string;
  readonly value: number | null;
  readonly onSubmit: (value: string | null) => void;
}

function Field({ label, title, value, onSubmit }: FieldProps): ReactNode {
  const id = useId();
  const valueText = value === null ? '' : String(value);
  const [typed, setTyped] = useState(valueText);
  useEffect(() => setTyped(valueText), [valueText]);
  const submit = (): void => {
    const text = typed.trim();
    if (text === valueText) return;
    const isNumber = parsedNumber(text) !== null;
    // Restores the value after an invalid input.
    if (!isNumber) setTyped(valueText);
    if (isNumber || text === '') onSubmit(text || null);
  };
  return (
    <span className="job-term flex" title={title}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        inputMode="decimal"
        size={7}
        placeholder="–"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={submit}
        onKeyDown={(event) => {
          if (event.key === 'Enter') submit();
        }}
      />
    </span>
  );
}

/** Inputs for devices and price, from which the savings per day follow. */
export function Terms({ job }: { readonly job: JobReport | null }): ReactNode {
  const { location, go } = useNavigation();
  const terms = useTerms(job);
  const submit = (name: string, value: string | null): void =>
    go({ options: withOptions(location.options, { [name]: value }) }, 'replace');
  const recorded = job?.gpu_count ? ` Recorded: ${count(job.gpu_count)} ${job.gpu_source}.` : '';
  return (
    <div className="job-terms">
      <Field
        label="GPUs"
        title={`Number of devices of the job.${recorded}`}
        value={terms.deviceCount}
        onSubmit={(value) => submit('gpus', value)}
      />
      <Field
        label="Price of a GPU-hour"
        title="In your own currency; stored in this browser and in the link"
        value={terms.price}
        onSubmit={(value) => {
          writeChoice(PRICE, value);
          submit('price', value);
        }}
      />
    </div>
  );
}
