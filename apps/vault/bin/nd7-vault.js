#!/usr/bin/env -S node --initial-old-space-size=256 --max-semi-space-size=32
// The line above is how a vault is started: by systemd, in the container, by `npm start` and in the benchmarks, which all execute this file. Bodies pass
// through memory outside the heap; without this room the collector goes through all of it for every few segments (docs/adr/0013).
import '../dist/cli.js';
