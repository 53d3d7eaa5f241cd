# SPDX-License-Identifier: MIT
# FILE:FUNCTION of every definition with more than six parameters; "..." is none.
FNR == 1 {open = 0}
# A definition starts at the left edge, and its parameters may go on over lines; "{" alone on a line follows.
/^[a-z].*\(/ && !/;/ && !/^(typedef|return|else)/ && !open {head = ""; open = 1}
open {
    head = head " " $0
    if (/[;={]$/ && !/^\{/) {open = 0; next}
    if (/^\{/) {
        open = 0
        name = head; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
        list = head; sub(/^[^(]*\(/, "", list); gsub(/, \.\.\./, "", list)
        while (gsub(/\([^()]*\)/, "", list)) {}
        if (gsub(/,/, ",", list) >= 6) print FILENAME ":" name
    }
}
