import { describeTable } from '../../../tests/views';
import fixture from './fixture.json';

describeTable('operators', 'Operators', fixture);
