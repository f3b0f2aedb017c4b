import type { PolicyDocument } from '../document.js';

/** Folders that a pack makes for those who have one of its programs, and for nobody else. */
const made = (ifPrograms: string[], ...paths: string[]) => paths.map((path) => ({ path, ifPrograms }));

/** Packs of toolchains: the caches they write and the registries they read. */
export const TOOLCHAINS: Readonly<Record<string, PolicyDocument>> = {
  npm: {
    nd7: 1,
    files: { write: { allow: ['$npm_config_cache'] } },
    makeFolders: made(['npm'], '$npm_config_cache'),
    protect: { record: ['$npm_config_cache/_npx'] },
    network: { allow: ['registry.npmjs.org'] },
    environment: { set: { npm_config_update_notifier: 'false' } },
  },
  pnpm: {
    nd7: 1,
    files: { write: { allow: ['$PNPM_HOME/store', '$XDG_CACHE_HOME/pnpm', '$XDG_STATE_HOME/pnpm'] } },
    makeFolders: made(['pnpm'], '$PNPM_HOME/store', '$XDG_CACHE_HOME/pnpm', '$XDG_STATE_HOME/pnpm'),
    network: { allow: ['registry.npmjs.org'] },
  },
  yarn: {
    nd7: 1,
    files: { write: { allow: ['~/.yarn/berry', '$XDG_CACHE_HOME/yarn', '$XDG_CACHE_HOME/node/corepack'] } },
    makeFolders: [
      ...made(['yarn'], '~/.yarn/berry', '$XDG_CACHE_HOME/yarn'),
      ...made(['corepack'], '$XDG_CACHE_HOME/node/corepack'),
    ],
    network: { allow: ['registry.yarnpkg.com', 'repo.yarnpkg.com', 'registry.npmjs.org'] },
  },
  pip: {
    nd7: 1,
    files: { write: { allow: ['$PIP_CACHE_DIR', '$UV_CACHE_DIR'] } },
    makeFolders: [...made(['pip', 'pip3'], '$PIP_CACHE_DIR'), ...made(['uv'], '$UV_CACHE_DIR')],
    network: { allow: ['pypi.org', 'files.pythonhosted.org'] },
    environment: { set: { PIP_DISABLE_PIP_VERSION_CHECK: '1' } },
  },
  cargo: {
    nd7: 1,
    // Not $CARGO_HOME itself: bin, config.toml and env run later, outside.
    files: {
      write: {
        allow: [
          '$CARGO_HOME/registry',
          '$CARGO_HOME/git',
          '$CARGO_HOME/.package-cache',
          '$CARGO_HOME/.package-cache-mutate',
          '$CARGO_HOME/.global-cache',
        ],
      },
    },
    makeFolders: made(['cargo'], '$CARGO_HOME/registry', '$CARGO_HOME/git'),
    network: { allow: ['index.crates.io', 'static.crates.io', 'crates.io'] },
  },
  go: {
    nd7: 1,
    // go run and go test run what they have just built: not from $TMP, where nothing runs.
    files: { write: { allow: ['$GOCACHE', '$GOMODCACHE', '$XDG_CACHE_HOME/nd7-go-tmp'] } },
    makeFolders: made(['go'], '$GOCACHE', '$GOMODCACHE', '$XDG_CACHE_HOME/nd7-go-tmp'),
    network: { allow: ['proxy.golang.org', 'sum.golang.org'] },
    environment: { set: { GOTMPDIR: '$XDG_CACHE_HOME/nd7-go-tmp', GOTELEMETRY: 'off' } },
  },
  maven: {
    nd7: 1,
    files: { write: { allow: ['~/.m2/repository', '~/.m2/wrapper'] } },
    makeFolders: made(['mvn'], '~/.m2/repository', '~/.m2/wrapper'),
    network: { allow: ['repo.maven.apache.org', 'repo1.maven.org'] },
  },
  gradle: {
    nd7: 1,
    // Not init.d and gradle.properties: they run at every later build.
    files: {
      write: {
        allow: [
          '$GRADLE_USER_HOME/caches',
          '$GRADLE_USER_HOME/daemon',
          '$GRADLE_USER_HOME/native',
          '$GRADLE_USER_HOME/wrapper',
          '$GRADLE_USER_HOME/.tmp',
          '$GRADLE_USER_HOME/notifications',
          '$GRADLE_USER_HOME/workers',
        ],
      },
    },
    makeFolders: made(
      ['gradle'],
      '$GRADLE_USER_HOME/caches',
      '$GRADLE_USER_HOME/daemon',
      '$GRADLE_USER_HOME/native',
      '$GRADLE_USER_HOME/wrapper',
      '$GRADLE_USER_HOME/.tmp',
    ),
    network: {
      allow: [
        'services.gradle.org',
        'downloads.gradle.org',
        'plugins.gradle.org',
        'plugins-artifacts.gradle.org',
        'repo.maven.apache.org',
        'repo1.maven.org',
      ],
    },
  },
};
