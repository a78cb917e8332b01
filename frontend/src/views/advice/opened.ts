/** The open findings: in the URL as their rules, with commas. */
import { useNavigation } from '../../state/navigation';

const NONE = 'none';

/** The rules that a link opens. */
export const openRules = (open: string | null): readonly string[] =>
  open === null || open === NONE ? [] : open.split(',');

interface OpenFindings {
  readonly rules: readonly string[];
  readonly toggle: (rule: string, isOpen: boolean) => void;
}

/** The open findings of a list; a single finding is open by default. */
export function useOpenFindings(listed: readonly string[] = []): OpenFindings {
  const { location, go } = useNavigation();
  const isDefault = location.open === null && listed.length === 1;
  const rules = isDefault ? listed : openRules(location.open);
  const toggle = (rule: string, isOpen: boolean): void => {
    const others = rules.filter((other) => other !== rule);
    const next = isOpen ? [...others, rule] : others;
    go({ open: next.join(',') || NONE }, 'replace');
  };
  return { rules, toggle };
}
