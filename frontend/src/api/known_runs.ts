export { useRunList as useKnownRuns } from './queries';
