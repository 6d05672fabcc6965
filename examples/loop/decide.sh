#!/bin/sh
# Decides on the change that is in the working tree: ./decide.sh "what it does" [more words for plumbline try]
# What is kept is committed, what is not is taken back (but for new files, which whoever made them removes); without a decision nothing is touched.
words=$1
shift
plumbline try --commit -m "$words" "$@"
code=$?
case $code in
0) ;; # kept, and committed
10 | 11 | 12) git restore --staged --worktree :/ ;; # of the whole repository, as a change is
*) echo "no decision (exit code $code): the change is still in the working tree" >&2 ;;
esac
exit $code
