import { describeTable } from '../../../tests/views';
import fixture from './fixture.json';

describeTable('kernels', 'Kernels', fixture);
