// Everything that `nd7 run` is tested for, typed as the native front of `nd7 init`.
process.env['ND7_TEST_FRONT'] = 'yes';
await import('./run.test.js');

export {};
