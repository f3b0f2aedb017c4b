# needs: git
git init -q -b main . && git config user.name n && git config user.email n@example.com
git init -q --bare -b main remote.git && echo remote.git > .gitignore
echo one > a && git add . && git commit -qm one
# Inside, a remote that is a folder of the session is none to push to by its name.
git remote add origin ./remote.git && git push -q remote.git main && git fetch -q && git branch -q -u origin/main
git checkout -q -b topic --track origin/main
echo two > b && git add b && git commit -qm two && git push -q remote.git topic && git fetch -q && git branch -q -u origin/topic
git rev-parse --abbrev-ref topic@{upstream} main@{upstream}
git switch -q main && echo three > c && git add c && git commit -qm three
git switch -q topic && git rebase -q main && git log --format=%s
git commit -q --amend -m 'two, again'
echo work >> a && git stash -q && git stash list | sed 's/.*: //;s/^[0-9a-f]* //' && git stash pop -q && git diff --stat
git commit -qam work && git tag -a v1 -m v1 && git describe
git switch -q -c other HEAD~1 && echo other > a && git commit -qam other
git merge -q topic > /dev/null || { git diff --name-only --diff-filter=U; echo both > a; git commit -qam merged; }
git revert --no-edit HEAD -m 1 > /dev/null && git log -1 --format=%s && git reset -q --hard HEAD~1
git switch -q topic && git cherry-pick other~1 > /dev/null 2>&1 || { echo picked > a; git add a; git cherry-pick --continue --no-edit > /dev/null 2>&1 || git -c core.editor=true cherry-pick --continue > /dev/null; }
GIT_SEQUENCE_EDITOR='sed -i "2,\$s/pick/squash/"' GIT_EDITOR=true git rebase -q -i main > /dev/null && git log --format=%s main..topic
git branch -q -D other && git gc -q --prune=now && git fsck 2> /dev/null && git count-objects -v | grep -E '^(count|garbage)'
git fetch -q --prune && git pull -q --rebase origin main && git remote && git branch -q -u origin/main && git branch -q --unset-upstream
git blame -s a | cut -c10- && git grep -n three && git archive HEAD | tar -t
git reflog expire --expire=now --all && git maintenance run --task=commit-graph --quiet
touch untracked && git clean -xfdq -e remote.git && git status --short && ls
