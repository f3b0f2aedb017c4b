# Worktrees, submodules, sparse checkouts, repositories in a subfolder.
# needs: git
git init -q -b main . && git config user.name n && git config user.email n@example.com
mkdir -p x y && echo 1 > x/1 && echo 2 > y/2 && printf 'lib.git\nwork\nsub\nclone\nshallow\n' > .gitignore && git add . && git commit -qm first
git init -q --bare -b main lib.git && git push -q ./lib.git main
git worktree add -q work -b side && (cd work && echo 3 > 3 && git add 3 && git commit -qm side && git status --short --branch)
git worktree list | wc -l && git worktree remove work && git worktree prune && git branch
git sparse-checkout set x && ls && git sparse-checkout disable && ls
git -c protocol.file.allow=always submodule --quiet add ./lib.git lib && git commit -qm lib
git submodule status | cut -c1,42- && git submodule foreach --quiet 'ls'
git -c protocol.file.allow=always submodule update --init --remote --quiet && git submodule deinit -q lib && git submodule --quiet update --init 2>&1 | tail -1
mkdir sub && cd sub && git init -q -b main && git config user.name n && git config user.email n@example.com && echo s > s && git add s && git commit -qm s && git log --format=%s && cd ..
git clone -q lib.git clone && git -C clone log --format=%s && git -C clone switch -q -c there && git -C clone push -q ../lib.git there
git clone -q --depth 1 "file://$PWD/lib.git" shallow && git -C shallow rev-list --count HEAD
rm -rf sub clone shallow lib.git && git status --short
