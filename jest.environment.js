// The environment of every test: what a test starts has no colours unless it is asked for them. nx and jest's own workers ask all
// their children for colours, and `console.log(process.pid)` of a script then prints more than a number.
import { TestEnvironment } from 'jest-environment-node';

export default class extends TestEnvironment {
  constructor(...given) {
    delete process.env['FORCE_COLOR'];
    super(...given);
  }
}
