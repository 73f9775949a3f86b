#!/bin/sh
# Opens a pull request with new locks: propose_lock.sh PATCH, called weekly by the workflow `lock`.
#   GH_TOKEN   may push branches and open pull requests; git reaches it through gh
# Exit code 0 also where nothing is new; an open pull request gets the newest locks.
set -eu

patch=${1:?name the patch: propose_lock.sh lock.patch}
branch=lock-update
title="The locks of $(date -u +%F)"

if ! test -s "$patch"; then
    echo "the locks are up to date"
    exit 0
fi
# Only locks: a patch that changes anything else is not the work of `make lock`.
changed=$(git apply --numstat "$patch" | cut -f 3)
for file in $changed; do
    case "$file" in
    *.lock | agent/package-lock.json) ;;
    *)
        echo "propose_lock.sh: $patch changes $file, which is no lock; nothing is pushed" >&2
        exit 2
        ;;
    esac
done

git switch --quiet --force-create "$branch"
git apply --index "$patch"
git -c user.name="github-actions[bot]" -c user.email="41898282+github-actions[bot]@users.noreply.github.com" \
    commit --quiet --message "$title"
gh auth setup-git
git push --quiet --force origin "$branch"
if test -n "$(gh pr list --head "$branch" --state open --json number --jq '.[].number')"; then
    echo "the open pull request of $branch has the new locks"
else
    gh pr create --head "$branch" --title "$title" \
        --body "Made by \`make lock\`. Close and reopen this pull request to start its tests: a workflow's own pull request starts none."
fi
