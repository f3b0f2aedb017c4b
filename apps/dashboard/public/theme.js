// Sets the chosen theme before the first paint; a file of its own because the policy allows no inline script.
try {
  const theme = localStorage.getItem('nd7-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's theme.
}
