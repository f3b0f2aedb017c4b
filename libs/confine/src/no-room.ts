/** Whether a system call failed since the disk, or what somebody may use of it, is full. */
export function hasNoRoom(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
