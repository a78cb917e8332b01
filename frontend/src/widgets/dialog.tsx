import { type ReactNode, type RefObject, useEffect } from 'react';

interface Props {
  readonly dialog: RefObject<HTMLDialogElement | null>;
  readonly className: string;
  readonly label: string;
  readonly close: () => void;
  readonly children: ReactNode;
}

/** A modal dialog; Escape and a click beside it close it. */
export function Dialog({ dialog, className, label, close, children }: Props): ReactNode {
  useEffect(() => dialog.current?.showModal(), [dialog]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the dialog closes on Escape by itself
    <dialog
      ref={dialog}
      className={`${className} popup`}
      aria-label={label}
      onClose={close}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      {children}
    </dialog>
  );
}
