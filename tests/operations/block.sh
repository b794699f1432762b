# Reads the commands of docs/operations; to be sourced.
# shellcheck shell=bash

# block PAGE NAME: the commands below `<!-- run: NAME -->` or `<!-- run by TEST: NAME -->`, without the indentation of a list.
block() {
    awk -v name="$2" '
        $0 ~ "<!-- run( by [^:]*)?: " name " -->" { indent = index($0, "<") - 1; is_next = 1; next }
        is_next && /```sh/ { is_in = 1; is_next = 0; next }
        is_in && /```$/ { exit }
        is_in { print substr($0, indent + 1) }' "docs/operations/$1.md"
}
