import type { SessionReport } from '@nd7/verify';

/** Hands the report to the reader as a file; it is made here and sent nowhere. */
export function saveReport(report: SessionReport): void {
  const url = URL.createObjectURL(new Blob([`${JSON.stringify(report, null, 2)}\n`], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `nd7-report-${report.session}.json`;
  link.click();
  setTimeout(() => {
    URL.revokeObjectURL(url);
  }, 10_000);
}
