export { fileSet } from './queries';
