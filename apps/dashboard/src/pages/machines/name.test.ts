import { machineName } from './name.js';

const key = (digit: string): string => digit.repeat(64);
const machines = [
  { machine: key('a'), name: 'laptop' },
  { machine: key('b'), name: 'desk' },
  { machine: key('c'), name: 'desk' },
];

describe('a machine', () => {
  it('is called by its name', () => {
    expect(machineName(key('a'), machines)).toBe('laptop');
  });

  it('that shares its name is told from the others by its key', () => {
    expect(machineName(key('b'), machines)).toBe('desk bbbbbbbb');
    expect(machineName(key('c'), machines)).toBe('desk cccccccc');
    expect(machineName(key('d'), machines, 'desk')).toBe('desk dddddddd');
  });

  it('that is not among those is called by its key, or as its session says', () => {
    expect(machineName(key('d'), machines)).toBe('dddddddd…dddddd');
    expect(machineName(key('d'), [], 'other')).toBe('other');
  });
});
