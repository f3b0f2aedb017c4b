/** Switches between light and dark. Back at what the system wants, the choice is forgotten and the system decides again. */
export function toggleTheme(): void {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const next = (root.dataset.theme ?? system) === 'dark' ? 'light' : 'dark';
  try {
    if (next === system) localStorage.removeItem('nd7-theme');
    else localStorage.setItem('nd7-theme', next);
  } catch {
    // No storage: the choice lasts until the page is left.
  }
  if (next === system) delete root.dataset.theme;
  else root.dataset.theme = next;
}
